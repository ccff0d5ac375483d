import type pg from 'pg';
import { directDatabaseUrl } from './migrate.ts';

/** Enough for one statement after the other. */
const connections = 1;
/** Nobody else waits for a command: sums over a year of requests may take their time. */
const patienceMs = 60_000;
/** A server that is busy answers late; one that takes longer than this is not there. */
const connectMs = 10_000;

/** Runs `work` on the database of the settings, and lets go of it. Throws SettingsError, and StoreAway. */
export async function withPool<Result>(work: (pool: pg.Pool) => Promise<Result>): Promise<Result> {
  const { createPool } = await import('../adapters/postgres/pool.ts');
  const pool = createPool(directDatabaseUrl(), connections, { patienceMs, connectMs });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
