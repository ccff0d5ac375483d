import { fork } from 'node:child_process';
import { once } from 'node:events';
import pg from 'pg';
import { aroundEach, expect, test } from 'vitest';
import { migrate } from '../../../src/adapters/postgres/migrate.ts';
import { readMigrations } from '../../../src/adapters/postgres/migration-files.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';

const database = useDatabase(aroundEach, { migrated: false });
const pool = usePool(database, 2, aroundEach);

const script = new URL('./migrate-child.ts', import.meta.url);

async function migrateInProcess(): Promise<number | null> {
  const child = fork(script, [database.url], { stdio: 'ignore' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}

async function appliedNames(): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>('SELECT name FROM schema_migrations ORDER BY version');
  return rows.map((row) => row.name);
}

const known = readMigrations().map(({ name }) => name);

test('an empty database gets every migration, once', async () => {
  await migrate(database.url);
  await migrate(database.url);
  expect(await appliedNames()).toEqual(known);
});

test('eight processes at once apply each migration once', async () => {
  const codes = await Promise.all(Array.from({ length: 8 }, migrateInProcess));
  expect(codes).toEqual(Array(8).fill(0));
  expect(await appliedNames()).toEqual(known);
});

test('a process killed while it migrates leaves whole steps, and the next one completes them', async () => {
  // The lock is held here until the child waits for it, so that the kill comes in the middle of its run.
  for (const killAfterStatements of [1, 2]) {
    const child = fork(script, [database.url, String(killAfterStatements)], { stdio: 'ignore' });
    await once(child, 'exit');
    expect(child.signalCode).toBe('SIGKILL');
  }
  await migrate(database.url);
  expect(await appliedNames()).toEqual(known);
});

test('waiting for another process ends with the signal', async () => {
  const holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
  await holder.query('SELECT pg_advisory_lock(7163001)');
  const controller = new AbortController();
  const migrating = migrate(database.url, { signal: controller.signal });
  await expect
    .poll(async () => {
      const { rows } = await pool.query(`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`);
      return rows.length;
    })
    .toBe(1);
  controller.abort(new Error('enough'));
  await expect(migrating).rejects.toThrow('enough');
  await holder.end();
});
