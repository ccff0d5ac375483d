import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { connectClient } from './host-choice.ts';
import { sqlState } from './pool.ts';

/** Beside this file in `src` and in `dist`. */
const folder = new URL('./migrations/', import.meta.url);
const fileName = /^(\d{4})-[a-z0-9-]+\.sql$/;
/** Any number will do as long as no other lock of this program uses it. */
const migrationLock = 7_163_001;
const connectTimeoutMs = 5000;
/** After this long without a sign the network is asked whether the server is still there. */
const keepAliveDelayMs = 10_000;
/** For another process that migrates, and for one statement of ours on a large table. */
const statementTimeoutMs = 600_000;
/** Whoever queues for a strong lock holds up every query behind it: better to step back and queue again. */
const lockTimeoutMs = 2_000;
/** About a minute of tries, with the pauses between them. */
const lockTries = 20;
const lockPauseMs = 1_000;
const lockTimeoutState = '55P03';

interface Migration {
  readonly version: number;
  readonly name: string;
}

function listMigrations(): Migration[] {
  const migrations = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({ version: Number(fileName.exec(name)?.[1]), name }));
  migrations.forEach(({ version, name }, index) => {
    if (version !== index + 1) throw new Error(`migration ${name} is not number ${index + 1}`);
  });
  return migrations;
}

/** The schema this build was written for. */
export function neededSchemaVersion(): number {
  return listMigrations().length;
}

/** The newest migration applied; 0 for an empty database. */
export async function schemaVersion(pool: Pick<pg.Pool, 'query'>): Promise<number> {
  try {
    const { rows } = await pool.query<{ version: number | null }>(
      'SELECT max(version) AS version FROM schema_migrations',
    );
    return rows[0]?.version ?? 0;
  } catch (error) {
    if (sqlState(error) === '42P01') return 0;
    throw error;
  }
}

/** Again where a lock did not come in time, since nothing of the file has been done then. */
async function apply(client: pg.Client, migration: Migration, signal?: AbortSignal): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await applyOnce(client, migration);
    } catch (error) {
      if (sqlState(error) !== lockTimeoutState || tries === lockTries) throw error;
      await client.query('ROLLBACK');
      await sleep(lockPauseMs, undefined, { signal });
    }
  }
}

async function applyOnce(client: pg.Client, { version, name }: Migration): Promise<void> {
  const sql = readFileSync(new URL(name, folder), 'utf8');
  await client.query(`BEGIN; SET LOCAL lock_timeout = ${lockTimeoutMs}`);
  await client.query(sql);
  await client.query('INSERT INTO schema_migrations (version, name) VALUES ($1, $2)', [version, name]);
  await client.query('COMMIT');
}

/**
 * Brings the schema up to date. Any number of processes may run it at once: one works, the others wait
 * on an advisory lock, which falls with its connection. Each file is one transaction, so a process killed
 * half way leaves whole steps and the next one goes on from there. `databaseUrl` must be a direct
 * connection; a transaction-mode pooler would lose the lock. Rejects when Postgres is away, a file fails,
 * or a lock does not come within a minute.
 */
export async function migrate(databaseUrl: string, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  const client = await connectClient(databaseUrl, '-migrate', {
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveDelayMs,
  });
  const abort = (): void => void client.end().catch(() => {});
  signal?.addEventListener('abort', abort, { once: true });
  try {
    signal?.throwIfAborted();
    await client.query(`SET statement_timeout = ${statementTimeoutMs}`);
    await client.query('SELECT pg_advisory_lock($1)', [migrationLock]);
    await client.query(
      `CREATE TABLE IF NOT EXISTS schema_migrations (
         version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`,
    );
    const applied = await schemaVersion(client as unknown as Pick<pg.Pool, 'query'>);
    for (const migration of listMigrations()) {
      if (migration.version > applied) await apply(client, migration, signal);
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
    await client.end().catch(() => {});
  }
}
