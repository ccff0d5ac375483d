import { setImmediate as nextTurn } from 'node:timers/promises';
import type pg from 'pg';
import { formatMicroUsd } from '../../core/cost.ts';
import { InvalidRequestError } from '../../core/errors.ts';
import type { StatsGroup } from '../../core/stats-group.ts';
import { formatTimestampMicros, latestMicros } from '../../core/timestamp.ts';
import { latencyBucketCount, latencyPercentile } from './latency-buckets.ts';
import { withDatabase } from './pool.ts';

export interface StatsQuery {
  /** Microseconds since the epoch, inclusive; widened to the hour it lies in. Null: no bound. */
  readonly since: bigint | null;
  /** Exclusive; widened to the end of the hour it lies in. Null: no bound. */
  readonly until: bigint | null;
  /** Distinct; empty for totals only. */
  readonly groupBy: readonly StatsGroup[];
}

/** Sums over a set of requests. */
export interface StatsSums {
  readonly requests: number;
  readonly successes: number;
  /** `requests` less `successes`: errors, cut streams and requests whose client left. */
  readonly errors: number;
  readonly cache_hits: number;
  /** Tokens of cache hits included. */
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
  /** Six-decimal strings; exact sums of the rows' own amounts. */
  readonly cost_usd: string;
  /** What the cache hits would have cost. */
  readonly saved_usd: string;
  /** Estimated from latency classes, whole milliseconds; null when there was no request. */
  readonly latency_ms: {
    readonly p50: number | null;
    readonly p95: number | null;
    readonly p99: number | null;
  };
}

/**
 * The body of GET /v1/stats:
 * `{"since": string|null, "until": string|null, "group_by": ["provider", …], "totals": StatsSums,
 * "groups": [{"provider": "openai", …, "day": "2026-11-20", …StatsSums}]}`.
 * `since` and `until` are the bounds that were applied, whole UTC hours (the end of the year 9999 excepted). `groups`
 * holds one entry per combination that occurred, ordered by the names in `group_by`; it is empty without `group_by`.
 */
export interface Stats {
  readonly since: string | null;
  readonly until: string | null;
  readonly group_by: readonly StatsGroup[];
  readonly totals: StatsSums;
  readonly groups: readonly (Readonly<Partial<Record<StatsGroup, string>>> & StatsSums)[];
}

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

const counts = ['requests', 'successes', 'cache_hits', 'input_tokens', 'output_tokens'] as const;
const amounts = ['cost_micro_usd', 'saved_micro_usd'] as const;
type Summed = (typeof counts)[number] | (typeof amounts)[number];
/** Sums of bigints arrive as text. */
type Row = Record<Summed | StatsGroup, string> & { readonly latency_buckets: readonly string[] };

const sums = [...counts, ...amounts].map((name) => `sum(${name})::text AS ${name}`).join(', ');
const bucketSums = Array.from(
  { length: latencyBucketCount },
  (_, index) => `sum(latency_buckets[${index + 1}])::text`,
).join(', ');

function statsSql(groupBy: readonly StatsGroup[]): string {
  const groups = groupBy.map((name) => `${expressions[name]} AS ${name}, `).join('');
  const places = groupBy.map((_, index) => index + 1).join(', ');
  const grouping = groupBy.length === 0 ? '' : `GROUP BY ${places} ORDER BY ${places}`;
  return `SELECT ${groups}${sums}, ARRAY[${bucketSums}] AS latency_buckets FROM request_rollups
    WHERE user_id = $1 AND hour >= $2::timestamptz AND hour < $3::timestamptz
    ${grouping} LIMIT ${maxGroups + 1}`;
}

/** Exact while it is added up; turned into JSON numbers and strings at the end. */
class Sums {
  readonly #sums = new Map<Summed, bigint>();
  readonly #buckets = new Array<number>(latencyBucketCount).fill(0);

  add(row: Row): this {
    for (const name of [...counts, ...amounts]) {
      this.#sums.set(name, this.#sum(name) + BigInt(row[name] ?? 0));
    }
    row.latency_buckets.forEach((count, index) => {
      this.#buckets[index] = (this.#buckets[index] ?? 0) + Number(count ?? 0);
    });
    return this;
  }

  toJson(): StatsSums {
    const count = (name: Summed): number => Number(this.#sum(name));
    return {
      requests: count('requests'),
      successes: count('successes'),
      errors: count('requests') - count('successes'),
      cache_hits: count('cache_hits'),
      input_tokens: count('input_tokens'),
      output_tokens: count('output_tokens'),
      total_tokens: count('input_tokens') + count('output_tokens'),
      cost_usd: formatMicroUsd(this.#sum('cost_micro_usd')),
      saved_usd: formatMicroUsd(this.#sum('saved_micro_usd')),
      latency_ms: {
        p50: latencyPercentile(this.#buckets, 0.5),
        p95: latencyPercentile(this.#buckets, 0.95),
        p99: latencyPercentile(this.#buckets, 0.99),
      },
    };
  }

  #sum(name: Summed): bigint {
    return this.#sums.get(name) ?? 0n;
  }
}

function floorHour(micros: bigint): bigint {
  return micros - (((micros % microsPerHour) + microsPerHour) % microsPerHour);
}

function ceilHour(micros: bigint): bigint {
  const hour = floorHour(micros + microsPerHour - 1n);
  return hour > latestMicros ? latestMicros : hour;
}

/**
 * Sums of the user's requests from the hourly rollups, so that it stays fast however many rows there are.
 * Throws InvalidRequestError past `maxGroups` groups, ServiceUnavailableError.
 */
export async function readStats(pool: pg.Pool, userId: string, query: StatsQuery): Promise<Stats> {
  const since = query.since === null ? null : formatTimestampMicros(floorHour(query.since));
  const until = query.until === null ? null : formatTimestampMicros(ceilHour(query.until));
  const { rows } = await withDatabase(() =>
    pool.query<Row>(statsSql(query.groupBy), [userId, since ?? '-infinity', until ?? 'infinity']),
  );
  if (rows.length > maxGroups) {
    const message = `More than ${maxGroups} groups; narrow the range or group by less.`;
    throw new InvalidRequestError(message, 'group_by');
  }
  const totals = new Sums();
  const groups: Stats['groups'][number][] = [];
  for (const [index, row] of rows.entries()) {
    if (index > 0 && index % rowsPerTurn === 0) await nextTurn();
    totals.add(row);
    if (query.groupBy.length === 0) continue;
    groups.push({
      ...Object.fromEntries(query.groupBy.map((name) => [name, row[name]])),
      ...new Sums().add(row).toJson(),
    });
  }
  return { since, until, group_by: query.groupBy, totals: totals.toJson(), groups };
}
