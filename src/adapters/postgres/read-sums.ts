import type pg from 'pg';
import type { StatsGroup } from '../../core/stats-group.ts';
import { formatTimestampMicros, hourOf, latestMicros, microsPerHour } from '../../core/timestamp.ts';
import { latencyBucketCount } from './latency-buckets.ts';
import { inTransaction, withDatabase } from './pool.ts';
import { rollupKey, rollupsOf, summedColumns } from './rollup-sums.ts';
import { microsOf } from './sql-micros.ts';
import type { RequestSums, SumsGroup, SumsRow } from './sum-groups.ts';
import { SumGroups } from './sum-groups.ts';

export interface SumsQuery {
  /** Microseconds since the epoch, inclusive; widened to the hour it lies in. Null: no bound. */
  readonly since: bigint | null;
  /** Exclusive; widened to the end of the hour it lies in. Null: no bound. */
  readonly until: bigint | null;
  /** Distinct; empty for totals only. */
  readonly groupBy: readonly StatsGroup[];
}

export type StoredSums =
  | {
      readonly kind: 'sums';
      /** The bounds that were applied: whole UTC hours, the end of the year 9999 excepted. */
      readonly sinceMicros: bigint | null;
      readonly untilMicros: bigint | null;
      readonly totals: RequestSums;
      /** Ordered by the names of `groupBy`; empty without one. Each is made when it is asked for. */
      readonly groups: Iterable<SumsGroup>;
    }
  | { readonly kind: 'too-many-groups'; readonly most: number };

/** More groups than anyone reads in one answer; a narrower range or fewer names get below it. */
const maxGroups = 10_000;
/**
 * So much is summed up by one statement: of a user with a dozen models and modes in every hour some 6,000 rows, each on
 * a page of its own. Where those were not in memory, 30 days took half of the time that a statement has.
 */
const usualSlice = 20n * 24n * microsPerHour;

const expressions: Record<StatsGroup, string> = {
  provider: 'provider',
  model: 'model',
  mode: 'mode',
  day: `to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD')`,
};

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
  // Whatever the database's own order of letters: answers of several statements are put into this one.
  const order = groupBy.map((name) => `${expressions[name]} COLLATE "C"`).join(', ');
  const grouping = groupBy.length === 0 ? '' : `GROUP BY ${places} ORDER BY ${order}`;
  return `SELECT ${groups}${sumColumns}, array_to_string(ARRAY[${bucketSums}], ',', '0') AS latency_buckets
    FROM (${userSums}) AS sums WHERE hour >= $2::timestamptz AND hour < $3::timestamptz
    ${grouping} LIMIT ${maxGroups + 1}`;
}

/** The end of the hour, but never beyond the year 9999. */
export function ceilHour(micros: bigint): bigint {
  const hour = hourOf(micros + microsPerHour - 1n);
  return hour > latestMicros ? latestMicros : hour;
}

interface Bounds {
  readonly since: bigint | null;
  readonly until: bigint | null;
}

/** One statement for each; the last is as open as what was asked. `first`: the first hour with sums, null for none. */
export function slicesOf(
  { since, until }: Bounds,
  first: bigint | null,
  slice: bigint,
  nowMicros: bigint,
): readonly Bounds[] {
  if (first === null) return [{ since, until }];
  // What is asked for may end in the year 9999, and begin in the first.
  const end = until !== null && until < nowMicros ? until : nowMicros;
  const from = since !== null && since > first ? since : first;
  const slices: Bounds[] = [];
  let begin = since;
  for (let next = from + slice; next < end; next += slice) {
    slices.push({ since: begin, until: next });
    begin = next;
  }
  return [...slices, { since: begin, until }];
}

const firstHourSql = `
  SELECT ${microsOf('min(hour)')}::text AS micros FROM request_rollups WHERE user_id = $1`;

/** How what was asked for is cut. The first hour with sums is a hint: what is older or newer is in a slice too. */
async function cut(pool: pg.Pool, userId: string, bounds: Bounds, slice: bigint): Promise<readonly Bounds[]> {
  const nowMicros = BigInt(Date.now()) * 1000n;
  if (bounds.since !== null && (bounds.until ?? nowMicros) - bounds.since <= slice) return [bounds];
  const { rows } = await pool.query<{ micros: string | null }>(firstHourSql, [userId]);
  const first = rows[0]?.micros ?? null;
  return slicesOf(bounds, first === null ? null : BigInt(first), slice, nowMicros);
}

async function addSlices(
  db: Pick<pg.ClientBase, 'query'>,
  userId: string,
  groupBy: readonly StatsGroup[],
  slices: readonly Bounds[],
): Promise<SumGroups> {
  const groups = new SumGroups(groupBy);
  for (const { since, until } of slices) {
    const { rows } = await db.query<SumsRow>(sumsSql(groupBy), [
      userId,
      since === null ? '-infinity' : formatTimestampMicros(since),
      until === null ? 'infinity' : formatTimestampMicros(until),
    ]);
    await groups.add(rows);
    if (groups.size > maxGroups) break;
  }
  if (slices.length > 1) groups.sort();
  return groups;
}

/** All statements see the same moment. */
async function readGroups(
  pool: pg.Pool,
  userId: string,
  { groupBy, ...bounds }: SumsQuery,
  slice: bigint,
): Promise<SumGroups> {
  const slices = await cut(pool, userId, bounds, slice);
  if (slices.length === 1) return addSlices(pool, userId, groupBy, slices);
  return inTransaction(pool, async (client) => {
    await client.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
    return await addSlices(client, userId, groupBy, slices);
  });
}

/**
 * Sums of the user's requests from the hourly rollups and the few that are not in them yet, so that it stays fast
 * however many rows there are. Throws StoreAway.
 */
export async function readSums(
  pool: pg.Pool,
  userId: string,
  query: SumsQuery,
  slice = usualSlice,
): Promise<StoredSums> {
  const since = query.since === null ? null : hourOf(query.since);
  const until = query.until === null ? null : ceilHour(query.until);
  const groups = await withDatabase(() => readGroups(pool, userId, { ...query, since, until }, slice));
  if (groups.size > maxGroups) return { kind: 'too-many-groups', most: maxGroups };
  return {
    kind: 'sums',
    sinceMicros: since,
    untilMicros: until,
    totals: groups.totals.sums(),
    groups: groups.all(),
  };
}
