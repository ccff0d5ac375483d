import type pg from 'pg';
import { advisoryLocks } from './advisory-locks.ts';
import { lockTimeoutMs } from './brief-transaction.ts';
import { inTransaction, isCheckViolation, isNameTaken } from './pool.ts';

const dayMs = 86_400_000;
const weekMs = 7 * dayMs;
/** 1970-01-05 was a Monday: partitions are ISO weeks in UTC. */
const firstMondayMs = 4 * dayMs;
/** Far enough that a month without maintenance is no emergency. */
const weeksAhead = 5;
/** Rows spooled in an outage arrive late. */
const weeksBehind = 1;
/** Rollups outlive the rows: thirteen months, so that a month can be compared with the same of last year. */
const rollupRetentionDays = 400;
/** Moving stray rows or deleting old ones may take longer than a management call. */
const statementTimeoutMs = 60_000;

const partitionName = /^request_logs_(\d{4})(\d{2})(\d{2})$/;

export interface PartitionReport {
  /** False: another replica was at it, for a part at least. */
  readonly complete: boolean;
  readonly created: readonly string[];
  readonly dropped: readonly string[];
}

export interface PartitionOptions {
  readonly retentionDays: number;
  /** Wall clock. */
  readonly nowMs: number;
}

function weekStart(atMs: number): number {
  return firstMondayMs + Math.floor((atMs - firstMondayMs) / weekMs) * weekMs;
}

function timestamp(atMs: number): string {
  return new Date(atMs).toISOString();
}

function nameOf(startMs: number): string {
  return `request_logs_${timestamp(startMs).slice(0, 10).replaceAll('-', '')}`;
}

function startOf(name: string): number | null {
  const match = partitionName.exec(name);
  return match === null ? null : Date.UTC(Number(match[1]), Number(match[2]) - 1, Number(match[3]));
}

/** A statement that may take its time; the lock timeout still ends a wait for others. */
function runLong(client: pg.PoolClient, text: string, values: readonly string[] = []): Promise<unknown> {
  // `pg` reads its own timeout from the query too; its types do not say so.
  const query: pg.QueryConfig & { query_timeout: number } = {
    text,
    values: [...values],
    query_timeout: statementTimeoutMs,
  };
  return client.query(query);
}

async function attachedPartitions(client: pg.PoolClient): Promise<Set<string>> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_inherits JOIN pg_class ON oid = inhrelid
     WHERE inhparent = 'request_logs'::regclass`,
  );
  return new Set(rows.map((row) => row.name));
}

/**
 * Made beside the parent and attached, because `CREATE TABLE … PARTITION OF` would lock out every query.
 * Rows of this week that the default partition caught meanwhile move over first.
 */
async function createPartition(client: pg.PoolClient, startMs: number): Promise<void> {
  const name = nameOf(startMs);
  const [from, to] = [timestamp(startMs), timestamp(startMs + weekMs)];
  const range = `created_at >= '${from}' AND created_at < '${to}'`;
  await client.query(`CREATE TABLE ${name} (LIKE request_logs INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`);
  await runLong(
    client,
    `WITH moved AS (DELETE FROM request_logs_default WHERE ${range} RETURNING *)
     INSERT INTO ${name} SELECT * FROM moved`,
  );
  await runLong(
    client,
    `ALTER TABLE request_logs ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${to}')`,
  );
}

type LockedWork = (client: pg.PoolClient, existing: Set<string>) => Promise<void>;

/** One small transaction under the lock; false when another process holds it. */
function underLock(pool: pg.Pool, work: LockedWork): Promise<boolean> {
  const once = () => lockedOnce(pool, work);
  // A row came to the default partition after the others had been moved out of it: this time it is moved as well.
  return once().catch((error: unknown) => {
    if (!isCheckViolation(error)) throw error;
    return once();
  });
}

async function lockedOnce(pool: pg.Pool, work: LockedWork): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ held: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS held', [
      advisoryLocks.partitions,
    ]);
    if (rows[0]?.held !== true) return false;
    await client.query(
      `SET LOCAL lock_timeout = ${lockTimeoutMs}; SET LOCAL statement_timeout = ${statementTimeoutMs}`,
    );
    await work(client, await attachedPartitions(client));
    return true;
  });
}

/** A table of its name that is no partition, or rows that come faster than they can be moved. */
const isOfOneWeek = (error: unknown): boolean => isNameTaken(error) || isCheckViolation(error);

/**
 * Creates the weekly partitions of request_logs ahead of time and drops those that hold only rows older
 * than `retentionDays`. For the boot and every hour after; any number of replicas may run it, one works.
 * Rejects when Postgres is away or a lock did not come in time: nothing is half done, the next run goes on. A week that
 * cannot be made keeps neither the others nor retention back; the run rejects behind them.
 */
export async function maintainPartitions(
  pool: pg.Pool,
  { retentionDays, nowMs }: PartitionOptions,
): Promise<PartitionReport> {
  const created: string[] = [];
  const dropped: string[] = [];
  const failures: unknown[] = [];
  const attempt = (work: LockedWork): Promise<boolean> =>
    underLock(pool, work).catch((error: unknown) => {
      if (!isOfOneWeek(error)) throw error;
      failures.push(error);
      return true;
    });
  const horizonMs = nowMs - retentionDays * dayMs;
  const thisWeek = weekStart(nowMs);
  for (let week = -weeksBehind; week <= weeksAhead; week += 1) {
    const startMs = thisWeek + week * weekMs;
    const held = await attempt(async (client, existing) => {
      if (existing.has(nameOf(startMs)) || startMs + weekMs <= horizonMs) return;
      await createPartition(client, startMs);
      created.push(nameOf(startMs));
    });
    if (!held) return { created, dropped, complete: false };
  }
  const dropping = await attempt(async (client, existing) => {
    for (const name of existing) {
      const startMs = startOf(name);
      if (startMs === null || startMs + weekMs > horizonMs) continue;
      await runLong(client, `DROP TABLE ${name}`);
      dropped.push(name);
    }
  });
  // On their own: a week that is dropped locks out all who write rows or read them, and these may take their time.
  const deleting = await attempt(async (client) => {
    await runLong(client, 'DELETE FROM request_logs_default WHERE created_at < $1', [timestamp(horizonMs)]);
    const rollupHorizonMs = Math.min(horizonMs, nowMs - rollupRetentionDays * dayMs);
    await runLong(client, 'DELETE FROM request_rollups WHERE hour < $1', [timestamp(rollupHorizonMs)]);
  });
  if (failures.length > 0) throw failures[0];
  return { created, dropped, complete: dropping && deleting };
}
