import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { advisoryLocks } from './advisory-locks.ts';
import type { SchemaState } from './applied-migrations.ts';
import { compareSchema, readApplied, SchemaProblem } from './applied-migrations.ts';
import type { BriefWork } from './brief-transaction.ts';
import { briefly, briefStatementMs } from './brief-transaction.ts';
import type { Migration } from './migration-files.ts';
import { readMigrations } from './migration-files.ts';
import { withOwnClient } from './own-client.ts';

/** For another process that migrates, and for one statement where nobody else is: in an empty database. */
const patientTimeoutMs = 600_000;
/** Often enough that replicas which start together are ready together. */
const heldPauseMs = 500;
/** Of the lock, for whoever waits for it. */
export const lockHeldReason = 'another process holds the migration lock';
/** Files up to this one are older than that rule. They came before the first release: no large database lacks them. */
const lastPatientVersion = 9;

export interface MigrateOptions {
  readonly log?: Pick<Logger, 'info' | 'warn'>;
  /** Those of this release unless given. */
  readonly migrations?: readonly Migration[];
  readonly signal?: AbortSignal | undefined;
  /** Called once when there is something to be done, and another process has the lock. */
  readonly onHeld?: () => void;
}

type Work = Required<Pick<MigrateOptions, 'migrations'>> & BriefWork;

const tableSql = `
  CREATE TABLE IF NOT EXISTS schema_migrations (
    version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`;
/** Releases before wrote rows without them, and may again. */
const columnsSql = `
  ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS checksum text,
    ADD COLUMN IF NOT EXISTS oldest_code integer`;
const hasColumnsSql = `
  SELECT FROM pg_attribute
  WHERE attrelid = 'schema_migrations'::regclass AND attname IN ('checksum', 'oldest_code') AND NOT attisdropped`;

const insertSql =
  'INSERT INTO schema_migrations (version, name, checksum, oldest_code) VALUES ($1, $2, $3, $4)';

/** The table of what was applied, with its later columns: looked for first, since adding them takes a strong lock. */
async function prepareTable(work: Work): Promise<void> {
  const { client } = work;
  await client.query(tableSql);
  if ((await client.query(hasColumnsSql)).rowCount === 2) return;
  await briefly(work, 'schema_migrations', () => client.query(columnsSql));
}

async function bringUp(work: Work): Promise<SchemaState> {
  const { client, log, migrations } = work;
  await prepareTable(work);
  const applied = await readApplied(client);
  const state = compareSchema(applied, migrations);
  for (const { version, checksum } of state.unsealed)
    await client.query('UPDATE schema_migrations SET checksum = $2 WHERE version = $1', [version, checksum]);
  if (state.unsealed.length > 0)
    log?.info({ migrations: state.unsealed.length }, 'checksums of what was applied are taken on');
  for (const { version, name, sql, checksum, oldestCode } of state.missing) {
    const isPatient = applied.length === 0 || version <= lastPatientVersion;
    const startedAtMs = performance.now();
    const applyFile = async (): Promise<void> => {
      await client.query(sql);
      await client.query(insertSql, [version, name, checksum, oldestCode]);
    };
    await briefly(work, `migration ${name}`, applyFile, isPatient ? patientTimeoutMs : briefStatementMs);
    log?.info({ migration: name, ms: Math.round(performance.now() - startedAtMs) }, 'migration applied');
  }
  return { ...state, missing: [], unsealed: [] };
}

/**
 * The lock, or the schema where nothing is left to be done: a complete one asks for no lock, since whoever holds
 * that may be frozen. While another has the lock, both are looked at again and again. Rejects with SchemaProblem where
 * neither comes.
 */
async function lockOrComplete(
  { client, migrations, signal }: Work,
  onHeld: (() => void) | undefined,
): Promise<SchemaState | 'locked'> {
  for (let waitedMs = 0; ; waitedMs += heldPauseMs) {
    const state = compareSchema(await readApplied(client), migrations);
    if (state.missing.length === 0 && state.unsealed.length === 0) return state;
    const { rows } = await client.query<{ held: boolean }>('SELECT pg_try_advisory_lock($1) AS held', [
      advisoryLocks.migration,
    ]);
    if (rows[0]?.held === true) return 'locked';
    if (waitedMs === 0) onHeld?.();
    if (waitedMs >= patientTimeoutMs) throw new SchemaProblem(lockHeldReason);
    await sleep(heldPauseMs, undefined, { signal });
  }
}

/**
 * Brings the schema up to date. Any number of processes may run it at once: one works under an advisory lock, which
 * falls with its connection, and the others wait. Each file is one transaction, so a process killed half way leaves
 * whole steps and the next one goes on from there. `databaseUrl` must be a direct connection; a transaction-mode
 * pooler would lose the lock. Rejects when Postgres is away or a file fails; with SchemaProblem when what was applied
 * is not what this release has, or a lock does not come: that of migrations within ten minutes, one of a table within
 * one.
 */
export function migrate(databaseUrl: string, options: MigrateOptions = {}): Promise<SchemaState> {
  const { migrations = readMigrations(), signal, onHeld } = options;
  return withOwnClient(databaseUrl, 'migrate', signal, async (client) => {
    await client.query(`SET statement_timeout = ${patientTimeoutMs}`);
    const work = { ...options, migrations, client };
    const state = await lockOrComplete(work, onHeld);
    return state === 'locked' ? await bringUp(work) : state;
  });
}
