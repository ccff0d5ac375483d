import { DIRECT, dutyRows, FLOOR, telemetryRows, UNWATCHED } from './targets.mjs';
import { HELD_STREAMS } from './workload.mjs';

/** What was measured, as Markdown. */

const suites = ['json', 'burst', 'paced'];
const suiteHead = ['JSON request', 'event, burst', 'event, paced', 'CPU, µs: request / burst / paced'];

/** What the gateway costs, against the floor. */
export function dutyTable(rounds, held) {
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
export function telemetryTable(rounds) {
  const rows = telemetryRows.map((name) => [name, ...suiteCells(rounds, name, UNWATCHED)]);
  return markdown(['target', ...suiteHead], rows);
}

/** What the parts take; measurements as test/bench/yardstick.ts notes them. */
export function partsTable(measurements) {
  const rows = measurements.map(({ yardstick, name, ratio: times, microseconds }) => [
    name,
    yardstick,
    times.toFixed(2),
    microseconds.toFixed(2),
  ]);
  return markdown(['part', 'against', 'ratio', 'µs'], rows);
}

function markdown(head, rows) {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** The three ratios against `base`, and the CPU times behind them. */
function suiteCells(rounds, name, base) {
  const times = suites.map((suite) => absolute(rounds, suite, name)).filter((text) => text !== '');
  return [...suites.map((suite) => ratio(rounds, suite, name, base)), times.join(' / ')];
}

/** CPU against another target of the same round: the median, and in brackets the least and the most. */
function ratio(rounds, suite, name, base) {
  if (rounds[0][suite][name] === undefined) return '';
  if (name === base) return '1';
  const ratios = rounds.map((round) => round[suite][name].cpu / round[suite][base].cpu);
  const [least, middle, most] = [Math.min(...ratios), median(ratios), Math.max(...ratios)];
  return `${middle.toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`;
}

function absolute(rounds, suite, name) {
  if (rounds[0][suite][name] === undefined) return '';
  const middle = median(rounds.map((round) => round[suite][name].cpu));
  return middle.toFixed(middle < 10 ? 1 : 0);
}

/** Milliseconds on top of the vendor's own, one request at a time. */
function addedLatency(rounds, name) {
  const { latency } = rounds[0];
  if (latency[name] === undefined) return '';
  const added = rounds.map((round) => round.latency[name].p50 - round.latency[DIRECT].p50);
  return median(added).toFixed(2);
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
