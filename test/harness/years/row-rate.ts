import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { migrate } from '../../../src/adapters/postgres/migrate.ts';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import type { RequestLogStats } from '../../../src/adapters/postgres/request-log-contract.ts';
import { childrenMicroseconds, cpuMicroseconds } from '../bench/processes.ts';

/** How many rows a second several replicas commit, what they and Postgres spend on it, and what would move that limit. */

/** Requests of one replica that end at any time. */
const open = 64;
const warmUpMs = 5_000;
const measuredMs = 15_000;

interface Change {
  readonly name: string;
  readonly sql: readonly string[];
}

/** As shipped first; the others give up what their name says. */
const changes: readonly Change[] = [
  { name: 'as shipped', sql: [] },
  {
    name: '`synchronous_commit = off`',
    sql: ['ALTER SYSTEM SET synchronous_commit = off', 'SELECT pg_reload_conf()'],
  },
  { name: 'and `unsummed_requests` unlogged', sql: ['ALTER TABLE unsummed_requests SET UNLOGGED'] },
];

/** Of one second, but for `spooled`, which is of all of it. */
export interface RowRate {
  readonly change: string;
  readonly replicas: number;
  readonly rows: number;
  readonly commits: number;
  readonly spooled: number;
  readonly postgresCores: number;
  readonly replicaCores: number;
  readonly walBytes: number;
}

async function statsOf(child: ChildProcess): Promise<RequestLogStats> {
  const answer = once(child, 'message');
  child.send('stats');
  const [stats] = (await answer) as [RequestLogStats];
  return stats;
}

/** What grows: taken twice, the difference is what was used. */
async function countsOf(pool: pg.Pool, postgresPid: number, children: readonly ChildProcess[]) {
  const stats = await Promise.all(children.map(statsOf));
  const { rows } = await pool.query<{ commits: string; wal: string }>(
    `SELECT xact_commit AS commits, pg_current_wal_lsn() - '0/0' AS wal
     FROM pg_stat_database WHERE datname = current_database()`,
  );
  return {
    atMs: performance.now(),
    rows: stats.reduce((sum, { written }) => sum + written, 0),
    spooled: stats.reduce((sum, { spooled }) => sum + spooled, 0),
    commits: Number(rows[0]?.commits),
    walBytes: Number(rows[0]?.wal),
    postgresMs: childrenMicroseconds(postgresPid) / 1_000,
    replicaMs: children.reduce((sum, { pid = 0 }) => sum + cpuMicroseconds(pid), 0) / 1_000,
  };
}

async function measureOne(
  databaseUrl: string,
  postgresPid: number,
  folder: string,
  change: string,
  replicas: number,
): Promise<RowRate> {
  const pool = createPool(databaseUrl, 1);
  const file = join(import.meta.dirname, 'writer-child.ts');
  const spool = join(folder, 'row-rate');
  const children = Array.from({ length: replicas }, () => fork(file, [databaseUrl, spool, String(open)]));
  try {
    await delay(warmUpMs);
    const before = await countsOf(pool, postgresPid, children);
    await delay(measuredMs);
    const after = await countsOf(pool, postgresPid, children);
    const ms = after.atMs - before.atMs;
    const perSecond = (name: keyof typeof before): number => ((after[name] - before[name]) / ms) * 1_000;
    return {
      change,
      replicas,
      rows: perSecond('rows'),
      commits: perSecond('commits'),
      spooled: after.spooled - before.spooled,
      postgresCores: perSecond('postgresMs') / 1_000,
      replicaCores: perSecond('replicaMs') / 1_000,
      walBytes: perSecond('walBytes'),
    };
  } finally {
    await Promise.all(
      children.map((child) => {
        const exited = once(child, 'exit');
        child.disconnect();
        return exited;
      }),
    );
    await pool.end();
  }
}

export async function measureRowRates(
  databaseUrl: string,
  postgresPid: number,
  folder: string,
  replicas: readonly number[],
): Promise<readonly RowRate[]> {
  await migrate(databaseUrl);
  // A vacuum may be at work on what is to be altered.
  const pool = createPool(databaseUrl, 1, { patienceMs: 60_000 });
  const rates: RowRate[] = [];
  for (const { name, sql } of changes) {
    for (const statement of sql) await pool.query(statement);
    for (const count of replicas) rates.push(await measureOne(databaseUrl, postgresPid, folder, name, count));
  }
  await pool.end();
  return rates;
}
