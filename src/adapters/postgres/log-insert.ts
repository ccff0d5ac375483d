import type pg from 'pg';
import { latencyBoundsMs, latencyBucketCount } from './latency-buckets.ts';
import { logColumns } from './log-columns.ts';
import { sqlState } from './pool.ts';
import { rollupSums, summedColumns } from './rollup-sums.ts';

/** The model of rollups that sum what is not told apart. */
const otherModel = '_other';

const names = logColumns.map(({ name }) => name).join(', ');
const recordset = logColumns.map(({ name, type }) => `${name} ${type}`).join(', ');

const bucketCounts = Array.from(
  { length: latencyBucketCount },
  (_, index) => `count(*) FILTER (WHERE bucket = ${index})`,
).join(', ');
const bucketSums = Array.from(
  { length: latencyBucketCount },
  (_, index) => `r.latency_buckets[${index + 1}] + excluded.latency_buckets[${index + 1}]`,
).join(', ');

/**
 * One statement: the rows that are new, and the rollups of exactly those; `others` is empty as a rule. Rollup rows are
 * taken in key order, so that two writers never wait for each other in a circle. Microseconds times an interval of one
 * microsecond is exact below 2^53.
 */
const insertSql = `
WITH input AS (
  SELECT 'epoch'::timestamptz + created_micros * interval '1 microsecond' AS created_at, is_other, ${names}
  FROM json_to_recordset($2::json) AS t (created_micros bigint, is_other boolean, ${recordset})
), others AS (
  SELECT DISTINCT row_id FROM input WHERE is_other
), inserted AS (
  INSERT INTO request_logs (created_at, ${names})
  SELECT created_at, ${names} FROM input
  ON CONFLICT (created_at, row_id) DO NOTHING
  RETURNING row_id, user_id, created_at, provider, model, mode, status, cache_hit, input_tokens, output_tokens,
    cost_micro_usd, saved_micro_usd, width_bucket(latency_ms, ARRAY[${latencyBoundsMs}]) AS bucket
), rolled_up AS (
  INSERT INTO request_rollups AS r
    (user_id, hour, provider, model, mode, lane, ${summedColumns.join(', ')}, latency_buckets)
  SELECT user_id, date_trunc('hour', created_at, 'UTC'), provider,
    CASE WHEN row_id IN (SELECT row_id FROM others) THEN '${otherModel}' ELSE model END, mode, $1::smallint,
    ${summedColumns.map((name) => rollupSums[name]).join(', ')}, ARRAY[${bucketCounts}]
  FROM inserted GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
  ON CONFLICT (user_id, hour, provider, model, mode, lane) DO UPDATE SET
    ${summedColumns.map((name) => `${name} = r.${name} + excluded.${name}`).join(', ')},
    latency_buckets = ARRAY[${bucketSums}]
)
SELECT count(*)::integer AS inserted FROM inserted`;

/**
 * A row was on its way to the default partition when the partition it belongs to was attached; it finds
 * that one the next time. The table has no other check.
 */
const partitionViolation = '23514';

/**
 * Inserts rows (of `encodeLogRow`) that are not there yet, with their rollups, in one transaction; zero
 * rows only prove that the table takes writes. `lane` keeps concurrent writers off each other's rollup
 * rows. Returns how many rows were new. Rejects with the error of `pg`.
 *
 * The statement is prepared once per connection, since planning it costs the server more than running it
 * for a few rows. So `pool` needs direct connections, not a transaction-mode pooler.
 */
export async function insertLogRows(pool: pg.Pool, rows: readonly string[], lane: number): Promise<number> {
  const insert = { name: 'insert-log-rows', text: insertSql, values: [lane, `[${rows.join(',')}]`] };
  let result: pg.QueryResult<{ inserted: number }>;
  try {
    result = await pool.query(insert);
  } catch (error) {
    if (sqlState(error) !== partitionViolation) throw error;
    result = await pool.query(insert);
  }
  return result.rows[0]?.inserted ?? 0;
}
