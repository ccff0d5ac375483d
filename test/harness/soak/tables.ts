import type { Sample } from './judge.ts';
import { isJudged } from './judge.ts';
import type { Ended } from './requests.ts';
import { endOf, kinds } from './requests.ts';

/** What a run prints. */

const mib = (bytes: number) => (bytes / 1024 / 1024).toFixed(1);

const columns: readonly [string, (sample: Sample) => string | number][] = [
  ['minute', ({ minute }) => minute.toFixed(1)],
  ['requests', ({ requests }) => requests],
  ['fail-over', ({ failedOver }) => failedOver ?? ''],
  ['JSON p50 ms', ({ latency }) => latency.p50Ms.toFixed(1)],
  ['p99 ms', (sample) => `${sample.latency.p99Ms.toFixed(1)}${isJudged(sample) ? '' : ' (not judged)'}`],
  ['waited for a core', ({ heldUp }) => `${(heldUp * 100).toFixed(1)} %`],
  ['RSS MiB', ({ rss }) => mib(rss)],
  ['of it anonymous', ({ anonymous }) => mib(anonymous)],
  ['heap MiB', ({ heapUsed }) => mib(heapUsed)],
  ['committed MiB', ({ heapTotal }) => mib(heapTotal)],
  ['outside MiB', ({ external }) => mib(external)],
  ['handles', ({ handles }) => handles],
];

const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;

export const sampleHeader = `${line(columns.map(([name]) => name))}\n|${'---|'.repeat(columns.length)}`;

export function sampleLine(sample: Sample): string {
  return line(columns.map(([, read]) => read(sample)));
}

/** Per kind of request: how many, and with which ends. */
export function kindTable(ended: readonly Ended[]): string {
  const lines = kinds.map(({ name }) => {
    const ofKind = ended.filter(({ kind }) => kind === name);
    const ends = Map.groupBy(ofKind, endOf);
    const told = [...ends].map(([end, of]) => `${end}: ${of.length}`).sort();
    return line([name, ofKind.length, told.join(', ')]);
  });
  return ['| kind | requests | status: how often |', '|---|---|---|', ...lines].join('\n');
}
