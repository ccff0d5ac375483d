import type { Figures, Turns } from './measure.ts';
import type { Measurement } from './micro.ts';
import type { Suite } from './suites.ts';
import {
  DIRECT,
  dutyRows,
  FLOOR,
  FLOOR_TLS,
  GATEWAY,
  processRows,
  telemetryRows,
  tlsRows,
} from './targets.ts';
import { HELD_STREAMS } from './workload.ts';

/** What was measured, as Markdown. */

const suites: readonly Suite[] = ['json', 'burst', 'paced'];
const suiteHead = ['JSON request', 'event, burst', 'event, paced', 'CPU, µs: request / burst / paced'];

/** What the gateway costs, against the floor. `held` are MiB by target. */
export function dutyTable(turns: Turns, held: Readonly<Record<string, number>>): string {
  const streams = HELD_STREAMS.toLocaleString('en');
  const head = ['target', ...suiteHead, 'added p50, ms', 'first token, ms', `MiB per ${streams} streams`];
  const rows = dutyRows.map((name) => [
    name,
    ...suiteCells(turns, name, FLOOR),
    addedLatency(turns, 'latency', name),
    addedLatency(turns, 'first', name),
    held[name]?.toFixed(0) ?? '',
  ]);
  return markdown(head, rows);
}

/** What it costs where the vendor speaks TLS, against a floor that does so too. */
export function tlsTable(turns: Turns): string {
  return markdown(
    ['target', ...suiteHead],
    tlsRows.map((name) => [name, ...suiteCells(turns, name, FLOOR_TLS)]),
  );
}

/** What telemetry costs, against a gateway with its defaults. */
export const telemetryTable = (turns: Turns): string => againstGateway(turns, telemetryRows);

/** What the same load costs where several processes share it, against one. */
export const processTable = (turns: Turns): string => againstGateway(turns, processRows);

function againstGateway(turns: Turns, names: readonly string[]): string {
  return markdown(
    ['target', ...suiteHead],
    names.map((name) => [name, ...suiteCells(turns, name, GATEWAY)]),
  );
}

/** How many slices of those tables count; the others were disturbed. */
export function keptSlices(turns: Turns): { readonly kept: number; readonly all: number } {
  const visits = [...new Set([...dutyRows, ...tlsRows, ...telemetryRows, ...processRows])]
    .filter((name) => name !== FLOOR && name !== FLOOR_TLS)
    .flatMap((name) => suites.map((suite) => turns[suite].map((turn) => turn[name] !== undefined)))
    .filter((slices) => slices.includes(true));
  return {
    kept: visits.flat().filter(Boolean).length,
    all: visits.flat().length,
  };
}

/** CPU of Postgres for one request, which is one row, in µs. */
export function postgresMicroseconds(turns: Turns): number {
  return median(turns.json.flatMap(({ [GATEWAY]: figures }) => figures?.postgres ?? []));
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

export function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** The three ratios against `base`, and the CPU times behind them. */
function suiteCells(turns: Turns, name: string, base: string): string[] {
  const times = suites.map((suite) => absolute(turns, suite, name)).filter((text) => text !== '');
  return [...suites.map((suite) => ratioCell(turns, suite, name, base)), times.join(' / ')];
}

function ratioCell(turns: Turns, suite: Suite, name: string, base: string): string {
  if (!turns[suite].some((turn) => turn[name] !== undefined)) return '';
  if (name === base) return '1';
  const { middle, error } = ratio(turns, suite, name);
  // No slice of the two was left undisturbed.
  if (Number.isNaN(middle)) return '–';
  return `${middle.toFixed(2)} ± ${error.toFixed(2)}`;
}

/** Of a normal distribution: its quartiles lie so many deviations apart, and a median errs so many times a mean. */
const quartileRange = 1.349;
const medianError = 1.2533;

/**
 * CPU against what it took turns with: the median, and its standard error, which is told by the middle half:
 * where something else ran in one slice, the median does not mind.
 */
export function ratio(turns: Turns, suite: Suite, name: string) {
  const ratios = turns[suite].flatMap(({ [name]: figures }) => figures?.ratio ?? []);
  const sorted = ratios.toSorted((a, b) => a - b);
  const quarter = Math.floor(sorted.length / 4);
  const range = (sorted.at(-1 - quarter) ?? Number.NaN) - (sorted[quarter] ?? Number.NaN);
  return { middle: median(ratios), error: (medianError * range) / quartileRange / Math.sqrt(ratios.length) };
}

function absolute(turns: Turns, suite: Suite, name: string): string {
  const times = compared(turns, suite, name, name, ({ cpu }) => cpu);
  if (times.length === 0) return '';
  const middle = median(times);
  return middle.toFixed(middle < 10 ? 1 : 0);
}

/** Milliseconds on top of the vendor's own, one request at a time. */
function addedLatency(turns: Turns, suite: 'latency' | 'first', name: string): string {
  const added = compared(turns, suite, name, DIRECT, (own, direct) => own.p50 - direct.p50);
  return added.length === 0 ? '' : median(added).toFixed(2);
}

/** `work` of what each turn found out about two targets; empty where the suite did not visit one of them. */
function compared(
  turns: Turns,
  suite: Suite,
  name: string,
  base: string,
  work: (own: Figures, other: Figures) => number,
): number[] {
  return turns[suite].flatMap(({ [name]: own, [base]: other }) =>
    own === undefined || other === undefined ? [] : work(own, other),
  );
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const { [(sorted.length - 1) >> 1]: lower = Number.NaN, [sorted.length >> 1]: upper = Number.NaN } = sorted;
  return (lower + upper) / 2;
}
