import type { Ended } from './requests.ts';
import { kinds } from './requests.ts';
import type { Memory } from './world.ts';

/** One look at the gateway in a quiet moment. */
export interface Sample extends Memory {
  readonly minute: number;
  readonly requests: number;
}

/** Growth of memory after the warm-up that fails the run. */
const maxDrift = 0.05;
/** The first quarter warms up: code is compiled, pools and caches fill. */
const warmUpShare = 0.25;
/** Looks that are taken together at either end, since a single one jumps by the size of an allocator's page run. */
const looks = 3;
/** Shorter runs are all warm-up: their memory is shown, and not judged. */
export const shortestJudgedMinutes = 5;
const mebibyte = 1024 * 1024;

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

export interface Drift {
  readonly what: string;
  readonly fromMiB: number;
  readonly toMiB: number;
  /** Of what it was at the end of the warm-up; negative when it shrank. */
  readonly share: number;
  readonly isTooMuch: boolean;
}

/** Memory at the end of the run against that at the end of the warm-up. */
export function drifts(samples: readonly Sample[]): Drift[] {
  const warm = samples.slice(Math.ceil(samples.length * warmUpShare));
  const measure = (what: string, read: (sample: Sample) => number): Drift => {
    const from = median(warm.slice(0, looks).map(read));
    const to = median(warm.slice(-looks).map(read));
    const share = to / from - 1;
    return {
      what,
      fromMiB: from / mebibyte,
      toMiB: to / mebibyte,
      share,
      isTooMuch: !(share <= maxDrift),
    };
  };
  return [measure('RSS', ({ rss }) => rss), measure('heap', ({ heapUsed }) => heapUsed)];
}

export interface Rows {
  /** Answers that a client had whole, and no row. */
  readonly missing: readonly string[];
  readonly doubled: readonly string[];
}

/** Compares what clients saw with the log: `rows` holds the request id of each. */
export function compareRows(ended: readonly Ended[], rows: readonly string[]): Rows {
  const counts = new Map<string, number>();
  for (const id of rows) counts.set(id, (counts.get(id) ?? 0) + 1);
  const answered = ended.filter(({ status, whole }) => whole && (status === 200 || status === 502));
  return {
    missing: answered.filter(({ id }) => !counts.has(id)).map(({ id }) => id),
    doubled: [...counts].filter(([, count]) => count > 1).map(([id]) => id),
  };
}

const mib = (bytes: number) => (bytes / mebibyte).toFixed(1);

export const sampleHeader =
  '| minute | requests | RSS MiB | of it anonymous | heap MiB | committed MiB | outside MiB | handles |\n|---|---|---|---|---|---|---|---|';

export function sampleLine(sample: Sample): string {
  const { minute, requests, rss, anonymous, heapUsed, heapTotal, external, handles } = sample;
  const cells = [
    minute.toFixed(1),
    requests,
    mib(rss),
    mib(anonymous),
    mib(heapUsed),
    mib(heapTotal),
    mib(external),
    handles,
  ];
  return `| ${cells.join(' | ')} |`;
}

/** Per kind of request: how many, and with which ends. */
export function kindTable(ended: readonly Ended[]): string {
  const lines = kinds.map(({ name }) => {
    const ofKind = ended.filter(({ kind }) => kind === name);
    const ends = Map.groupBy(ofKind, ({ status, whole }) => `${status ?? 'none'}${whole ? '' : ' (cut)'}`);
    const told = [...ends].map(([end, of]) => `${end}: ${of.length}`).sort();
    return `| ${name} | ${ofKind.length} | ${told.join(', ')} |`;
  });
  return ['| kind | requests | status: how often |', '|---|---|---|', ...lines].join('\n');
}
