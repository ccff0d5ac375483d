import type { Store } from './fail-overs.ts';
import type { Ended } from './requests.ts';
import { endOf, isCached, kinds, plain } from './requests.ts';
import type { Memory } from './world.ts';

/** One look at the gateway in a quiet moment. */
export interface Sample extends Memory {
  readonly minute: number;
  readonly requests: number;
  /** Of plain answers since the look before. */
  readonly latency: Latency;
  /** What failed over since the look before. */
  readonly failedOver: Store | null;
  /** Of the time since the look before: for how much the gateway was to run, and had no core. 0 to 1. */
  readonly heldUp: number;
}

/** Milliseconds; NaN of none. */
export interface Latency {
  readonly p50Ms: number;
  readonly p99Ms: number;
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
/**
 * How much slower the last third may be: half as slow again and a little, since a p99 is that of a machine which others
 * use too, where a gateway that slows down with what it has served is slower by more with every hour.
 */
const slowdown = { factor: 1.5, moreMs: 5 } as const;

/**
 * More than this the gateway waits for a core only beside other programs, which is no doing of its own: what it computes
 * itself is no wait. On two cores it is 3 to 4 % beside the servers and the load of the run alone, and 5 to 9 where
 * compilers and tests of others run as well.
 */
const mostHeldUp = 0.06;

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

/** Nearest rank. */
function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
}

/** Of the plain answers among these that came whole. */
export function latencyOf(ended: readonly Ended[]): Latency {
  const whole = ended.filter(({ kind, status, whole }) => kind === plain.name && status === 200 && whole);
  const sorted = whole.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  return { p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99) };
}

export interface Flatness {
  /** Medians of the p99s of the rounds. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly isFlat: boolean;
}

/** Whether a round tells something of the gateway's latency. */
export function isJudged({ failedOver, heldUp }: Sample): boolean {
  return failedOver === null && heldUp <= mostHeldUp;
}

/**
 * The last third of the rounds after the warm-up against the first, without those that tell nothing of latency; where a
 * third has no other, nothing is known, which is no success.
 */
export function flatness(samples: readonly Sample[]): Flatness {
  const warm = samples.slice(Math.ceil(samples.length * warmUpShare));
  const third = Math.ceil(warm.length / 3);
  const p99Of = (rounds: readonly Sample[]) =>
    median(rounds.filter(isJudged).map(({ latency }) => latency.p99Ms));
  const [fromMs, toMs] = [p99Of(warm.slice(0, third)), p99Of(warm.slice(warm.length - third))];
  return { fromMs, toMs, isFlat: toMs <= fromMs * slowdown.factor + slowdown.moreMs };
}

/** Requests that ended otherwise than their kind may, in words, with what their rows say of it. */
export function unexpectedEnds(ended: readonly Ended[], rows: readonly Row[] = []): string[] {
  const errorOf = new Map(rows.map(({ id, error }) => [id, error]));
  const allowed = new Map(kinds.map(({ name, ends }) => [name, ends ?? ['200']]));
  return ended
    .filter((one) => allowed.get(one.kind)?.includes(endOf(one)) !== true)
    .map((one) => {
      const error = errorOf.get(one.id) ?? '';
      return `${one.id} ${one.kind}: ${endOf(one)} after ${one.tookMs.toFixed(0)} ms ${error}`.trimEnd();
    });
}

/** One row of the log. */
export interface Row {
  readonly id: string;
  readonly attempts: number;
  /** What the row says went wrong. */
  readonly error?: string | null;
}

/**
 * Whole answers for which vendors had more calls than the row has attempts, or none, in words. Those of the cache are left
 * out. An attempt without a call is one whose time was up before the vendor had read it.
 */
export function miscounted(
  ended: readonly Ended[],
  rows: readonly Row[],
  calls: ReadonlyMap<string, number>,
): string[] {
  const told = new Set(kinds.filter((kind) => !isCached(kind)).map(({ name }) => name));
  const attemptsOf = new Map(rows.map(({ id, attempts }) => [id, attempts]));
  return ended
    .filter(({ kind, status, whole }) => told.has(kind) && whole && status === 200)
    .map(({ id }) => ({ id, attempts: attemptsOf.get(id), called: calls.get(id) ?? 0 }))
    .filter(({ attempts, called }) => called === 0 || called > (attempts ?? called))
    .map(({ id, attempts, called }) => `${id}: ${attempts} attempts in the row, ${called} calls`);
}

export interface Rows {
  /** Answers that a client had whole, and no row. */
  readonly missing: readonly string[];
  readonly doubled: readonly string[];
}

/** Compares what clients saw with the log. */
export function compareRows(ended: readonly Ended[], rows: readonly Pick<Row, 'id'>[]): Rows {
  const counts = new Map<string, number>();
  for (const { id } of rows) counts.set(id, (counts.get(id) ?? 0) + 1);
  const answered = ended.filter(({ status, whole }) => whole && (status === 200 || status === 502));
  return {
    missing: answered.filter(({ id }) => !counts.has(id)).map(({ id }) => id),
    doubled: [...counts].filter(([, count]) => count > 1).map(([id]) => id),
  };
}
