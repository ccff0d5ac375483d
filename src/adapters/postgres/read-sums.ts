import { setImmediate as nextTurn } from 'node:timers/promises';
import type pg from 'pg';
import type { StatsGroup } from '../../core/stats-group.ts';
import { formatTimestampMicros, latestMicros } from '../../core/timestamp.ts';
import { latencyBucketCount, latencyPercentile } from './latency-buckets.ts';
import { withDatabase } from './pool.ts';
import type { SummedColumn } from './rollup-sums.ts';
import { rollupKey, rollupsOf, summedColumns } from './rollup-sums.ts';

export interface SumsQuery {
  /** Microseconds since the epoch, inclusive; widened to the hour it lies in. Null: no bound. */
  readonly since: bigint | null;
  /** Exclusive; widened to the end of the hour it lies in. Null: no bound. */
  readonly until: bigint | null;
  /** Distinct; empty for totals only. */
  readonly groupBy: readonly StatsGroup[];
}

/** Exact sums over a set of requests, by the names of the rollups' columns; tokens of cache hits are included. */
export type RequestSums = Readonly<Record<SummedColumn, bigint>> & {
  /** Estimated from latency classes, whole milliseconds; null when there was no request. */
  readonly latencyMs: {
    readonly p50: number | null;
    readonly p95: number | null;
    readonly p99: number | null;
  };
};

/** One combination of values that occurred. */
export interface SumsGroup {
  readonly names: Readonly<Partial<Record<StatsGroup, string>>>;
  readonly sums: RequestSums;
}

export type StoredSums =
  | {
      readonly kind: 'sums';
      /** The bounds that were applied: whole UTC hours, the end of the year 9999 excepted. */
      readonly sinceMicros: bigint | null;
      readonly untilMicros: bigint | null;
      readonly totals: RequestSums;
      /** Ordered by the names of `groupBy`; empty without one. */
      readonly groups: readonly SumsGroup[];
    }
  | { readonly kind: 'too-many-groups'; readonly most: number };

/** More groups than anyone reads in one answer; a narrower range or fewer names get below it. */
const maxGroups = 10_000;
/** Added up in one go, a few milliseconds of work: chat requests have their turns in between. */
const rowsPerTurn = 250;
const microsPerHour = 3_600_000_000n;

const expressions: Record<StatsGroup, string> = {
  provider: 'provider',
  model: 'model',
  mode: 'mode',
  day: `to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD')`,
};

/**
 * Sums of bigints arrive as text. Those of latency classes are one text, taken apart when its row is added up: as
 * lists, the rows of the largest answer took 18 MiB.
 */
type Row = Record<SummedColumn | StatsGroup, string> & { readonly latency_buckets: string };

const sumColumns = summedColumns.map((name) => `sum(${name})::text AS ${name}`).join(', ');
const bucketSums = Array.from(
  { length: latencyBucketCount },
  (_, index) => `sum(latency_buckets[${index + 1}])`,
).join(', ');

/** What is summed up and what waits for it, read by one statement: every request once. */
const userSums = `
  SELECT ${rollupKey}, ${summedColumns}, latency_buckets FROM request_rollups WHERE user_id = $1
  UNION ALL ${rollupsOf('unsummed_requests WHERE user_id = $1')}`;

function sumsSql(groupBy: readonly StatsGroup[]): string {
  const groups = groupBy.map((name) => `${expressions[name]} AS ${name}, `).join('');
  const places = groupBy.map((_, index) => index + 1).join(', ');
  const grouping = groupBy.length === 0 ? '' : `GROUP BY ${places} ORDER BY ${places}`;
  return `SELECT ${groups}${sumColumns}, array_to_string(ARRAY[${bucketSums}], ',', '0') AS latency_buckets
    FROM (${userSums}) AS sums WHERE hour >= $2::timestamptz AND hour < $3::timestamptz
    ${grouping} LIMIT ${maxGroups + 1}`;
}

class Adding {
  readonly #sums: Record<SummedColumn, bigint> = {
    requests: 0n,
    successes: 0n,
    cache_hits: 0n,
    input_tokens: 0n,
    output_tokens: 0n,
    cost_micro_usd: 0n,
    saved_micro_usd: 0n,
  };
  readonly #buckets = new Array<number>(latencyBucketCount).fill(0);

  /** `buckets`: of the same row, taken apart. */
  add(row: Row, buckets: readonly string[]): this {
    for (const name of summedColumns) this.#sums[name] += BigInt(row[name] ?? 0);
    buckets.forEach((count, index) => {
      this.#buckets[index] = (this.#buckets[index] ?? 0) + Number(count);
    });
    return this;
  }

  sums(): RequestSums {
    const percentile = (fraction: number): number | null => latencyPercentile(this.#buckets, fraction);
    return {
      ...this.#sums,
      latencyMs: { p50: percentile(0.5), p95: percentile(0.95), p99: percentile(0.99) },
    };
  }
}

/** The start of the hour. */
export function floorHour(micros: bigint): bigint {
  return micros - (((micros % microsPerHour) + microsPerHour) % microsPerHour);
}

/** The end of the hour, but never beyond the year 9999. */
export function ceilHour(micros: bigint): bigint {
  const hour = floorHour(micros + microsPerHour - 1n);
  return hour > latestMicros ? latestMicros : hour;
}

/**
 * Sums of the user's requests from the hourly rollups and the few that are not in them yet, so that it stays fast
 * however many rows there are. Throws StoreAway.
 */
export async function readSums(pool: pg.Pool, userId: string, query: SumsQuery): Promise<StoredSums> {
  const sinceMicros = query.since === null ? null : floorHour(query.since);
  const untilMicros = query.until === null ? null : ceilHour(query.until);
  const { rows } = await withDatabase(() =>
    pool.query<Row>(sumsSql(query.groupBy), [
      userId,
      sinceMicros === null ? '-infinity' : formatTimestampMicros(sinceMicros),
      untilMicros === null ? 'infinity' : formatTimestampMicros(untilMicros),
    ]),
  );
  if (rows.length > maxGroups) return { kind: 'too-many-groups', most: maxGroups };
  const totals = new Adding();
  const groups: SumsGroup[] = [];
  while (rows.length > 0) {
    // Let go of as they are added up: their groups take as much again.
    for (const row of rows.splice(0, rowsPerTurn)) {
      const buckets = row.latency_buckets.split(',');
      totals.add(row, buckets);
      if (query.groupBy.length === 0) continue;
      const names = Object.fromEntries(query.groupBy.map((name) => [name, row[name]]));
      groups.push({ names, sums: new Adding().add(row, buckets).sums() });
    }
    if (rows.length > 0) await nextTurn();
  }
  return { kind: 'sums', sinceMicros, untilMicros, totals: totals.sums(), groups };
}
