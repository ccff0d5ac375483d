import type pg from 'pg';
import type { Logger } from 'pino';
import { advisoryLocks } from './advisory-locks.ts';
import { keepDoing } from './keep-doing.ts';
import { latencyBucketCount } from './latency-buckets.ts';
import { withDatabase } from './pool.ts';
import { rollupKey, rollupsOf, summedColumns, unsummedColumns } from './rollup-sums.ts';

/** The longer, the more requests share a row of sums, and the more of them a call of statistics reads one by one. */
const everyMs = 10_000;
/** At once: a tenth of the time that a statement has. Where it runs out of time all the same, fewer. */
const mostRequests = 5_000;
const fewestRequests = 100;
/** One at a time writes it. Other lanes are of releases that summed up by themselves. */
const lane = -1;

const columns = [...summedColumns, 'latency_buckets'];
const bucketSums = Array.from(
  { length: latencyBucketCount },
  (_, index) => `r.latency_buckets[${index + 1}] + excluded.latency_buckets[${index + 1}]`,
).join(', ');

/**
 * A request is deleted and counted by one statement, so that whoever reads both tables by one statement sees it in
 * exactly one. The lock only saves replicas from doing the same work.
 */
const sumSql = `
WITH taken AS (
  DELETE FROM unsummed_requests
  WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM unsummed_requests WHERE (SELECT pg_try_advisory_xact_lock(${advisoryLocks.summing})) LIMIT $1
  ))
  RETURNING ${unsummedColumns.join(', ')}
), summed AS (
  INSERT INTO request_rollups AS r (${rollupKey}, lane, ${columns})
  SELECT ${rollupKey}, ${lane}, ${columns} FROM (${rollupsOf('taken')}) AS sums ORDER BY ${rollupKey}
  ON CONFLICT (${rollupKey}, lane) DO UPDATE SET
    ${summedColumns.map((name) => `${name} = r.${name} + excluded.${name}`).join(', ')},
    latency_buckets = ARRAY[${bucketSums}]
)
SELECT count(*)::integer AS requests FROM taken`;

/** Moves what waits in `unsummed_requests` into the hourly sums; returns how many requests. Throws StoreAway. */
export async function sumUp(pool: pg.Pool, signal?: AbortSignal, atOnce = mostRequests): Promise<number> {
  for (let total = 0; ; ) {
    const { rows } = await withDatabase(() => pool.query<{ requests: number }>(sumSql, [atOnce]));
    const requests = rows[0]?.requests ?? 0;
    total += requests;
    if (requests < atOnce || signal?.aborted === true) return total;
  }
}

/** Sums up once the schema is there and every few seconds from then on; any number of replicas may. */
export function keepRollups(
  pool: pg.Pool,
  schemaReady: Promise<void>,
  log: Logger,
  signal: AbortSignal,
): void {
  let atOnce = mostRequests;
  let failed = false;
  keepDoing(schemaReady, everyMs, signal, async () => {
    try {
      await sumUp(pool, signal, atOnce);
      atOnce = Math.min(atOnce * 2, mostRequests);
      failed = false;
    } catch (error) {
      if (!failed)
        log.warn({ err: error }, 'requests not summed up; statistics read them one by one meanwhile');
      atOnce = Math.max(Math.floor(atOnce / 2), fewestRequests);
      failed = true;
    }
  });
}
