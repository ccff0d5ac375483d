import type pg from 'pg';
import type { Logger } from 'pino';
import { keepDoing } from './keep-doing.ts';
import { maintainPartitions } from './partitions.ts';

const everyMs = 3_600_000;
/** Of a replica whose clock is further from Postgres' its operator hears. */
const toleratedMs = 60_000;

type Voice = Pick<Logger, 'debug' | 'warn'>;

/**
 * The earlier of this replica's clock and Postgres': what is dropped is gone for good, and a replica whose clock is
 * ahead must not decide that for all.
 */
async function earlierOf(wallMs: number, pool: pg.Pool, log: Voice): Promise<number> {
  const { rows } = await pool.query<{ ms: number }>('SELECT extract(epoch FROM now())::float8 * 1000 AS ms');
  const databaseMs = rows[0]?.ms ?? wallMs;
  const aheadMs = wallMs - databaseMs;
  if (Math.abs(aheadMs) > toleratedMs) {
    const [seconds, way] = [Math.round(Math.abs(aheadMs) / 1000), aheadMs > 0 ? 'ahead of' : 'behind'];
    log.warn(`the clock of this replica is ${seconds} s ${way} that of Postgres`);
  }
  return Math.min(wallMs, databaseMs);
}

/**
 * Makes partitions ahead and drops those past retention: once the schema is there, then hourly. Returns when this
 * replica last did, in milliseconds since the epoch by its own clock; null: it has not yet.
 */
export function keepPartitions(
  pool: pg.Pool,
  schemaReady: Promise<void>,
  retentionDays: number,
  log: Voice,
  signal: AbortSignal,
  wallMs: () => number = Date.now,
): () => number | null {
  let keptAtMs: number | null = null;
  keepDoing(schemaReady, everyMs, signal, async () => {
    try {
      const nowMs = await earlierOf(wallMs(), pool, log);
      const report = await maintainPartitions(pool, { retentionDays, nowMs });
      if (report.complete) keptAtMs = wallMs();
      log.debug({ report }, 'log partitions maintained');
    } catch (error) {
      log.warn({ err: error }, 'log partitions not maintained; next try in an hour');
    }
  });
  return () => keptAtMs;
}
