import type { Figures, Round, Suite } from './measure.ts';
import type { Measurement } from './micro.ts';
import { DIRECT, dutyRows, FLOOR, telemetryRows, UNWATCHED } from './targets.ts';
import { HELD_STREAMS } from './workload.ts';

/** What was measured, as Markdown. */

const suites: readonly Suite[] = ['json', 'burst', 'paced'];
const suiteHead = ['JSON request', 'event, burst', 'event, paced', 'CPU, µs: request / burst / paced'];

/** What the gateway costs, against the floor. `held` are MiB by target. */
export function dutyTable(rounds: readonly Round[], held: Readonly<Record<string, number>>): string {
  const streams = HELD_STREAMS.toLocaleString('en');
  const head = ['target', ...suiteHead, 'added p50, ms', `MiB per ${streams} streams`];
  const rows = dutyRows.map((name) => [
    name,
    ...suiteCells(rounds, name, FLOOR),
    addedLatency(rounds, name),
    held[name]?.toFixed(0) ?? '',
  ]);
  return markdown(head, rows);
}

/** What telemetry costs, against a gateway that has none. */
export function telemetryTable(rounds: readonly Round[]): string {
  const rows = telemetryRows.map((name) => [name, ...suiteCells(rounds, name, UNWATCHED)]);
  return markdown(['target', ...suiteHead], rows);
}

/** What the parts take. */
export function partsTable(measurements: readonly Measurement[]): string {
  const rows = measurements.map(({ yardstick, name, ratio: times, microseconds }) => [
    name,
    yardstick,
    times.toFixed(2),
    microseconds.toFixed(2),
  ]);
  return markdown(['part', 'against', 'ratio', 'µs'], rows);
}

function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** The three ratios against `base`, and the CPU times behind them. */
function suiteCells(rounds: readonly Round[], name: string, base: string): string[] {
  const times = suites.map((suite) => absolute(rounds, suite, name)).filter((text) => text !== '');
  return [...suites.map((suite) => ratio(rounds, suite, name, base)), times.join(' / ')];
}

/** CPU against another target of the same round: the median, and in brackets the least and the most. */
function ratio(rounds: readonly Round[], suite: Suite, name: string, base: string): string {
  const ratios = compared(rounds, suite, name, base, (own, other) => own.cpu / other.cpu);
  if (ratios.length === 0) return '';
  if (name === base) return '1';
  const [least, middle, most] = [Math.min(...ratios), median(ratios), Math.max(...ratios)];
  return `${middle.toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`;
}

function absolute(rounds: readonly Round[], suite: Suite, name: string): string {
  const times = compared(rounds, suite, name, name, ({ cpu }) => cpu);
  if (times.length === 0) return '';
  const middle = median(times);
  return middle.toFixed(middle < 10 ? 1 : 0);
}

/** Milliseconds on top of the vendor's own, one request at a time. */
function addedLatency(rounds: readonly Round[], name: string): string {
  const added = compared(rounds, 'latency', name, DIRECT, (own, direct) => own.p50 - direct.p50);
  return added.length === 0 ? '' : median(added).toFixed(2);
}

/** `work` of what each round found out about two targets; empty where the suite did not visit one of them. */
function compared(
  rounds: readonly Round[],
  suite: Suite,
  name: string,
  base: string,
  work: (own: Figures, other: Figures) => number,
): number[] {
  return rounds.flatMap(({ [suite]: { [name]: own, [base]: other } }) =>
    own === undefined || other === undefined ? [] : work(own, other),
  );
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const { [(sorted.length - 1) >> 1]: lower = Number.NaN, [sorted.length >> 1]: upper = Number.NaN } = sorted;
  return (lower + upper) / 2;
}
