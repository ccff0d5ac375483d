import { fork } from 'node:child_process';
import { once } from 'node:events';
import { aroundEach, describe, expect, test } from 'vitest';
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

describe('while another process holds the lock, however long', () => {
  const holder = usePool(database, 1, aroundEach);

  async function takeLock(): Promise<void> {
    await holder.query('SELECT pg_advisory_lock(7163001)');
  }
  const forget = () => pool.query('DELETE FROM schema_migrations WHERE version = $1', [known.length]);

  /** Says when it was found that somebody has the lock. */
  function migrating(signal?: AbortSignal) {
    const held = Promise.withResolvers<void>();
    return { held: held.promise, done: migrate(database.url, { signal, onHeld: held.resolve }) };
  }

  test('a complete schema needs no lock', async () => {
    await migrate(database.url);
    await takeLock();
    expect(await migrate(database.url)).toEqual({ missing: [], unsealed: [], newer: [] });
  });

  test.each([
    ['an empty database', async () => {}],
    ['a schema without its last file', () => migrate(database.url).then(forget)],
    [
      'a schema without a checksum',
      () => migrate(database.url).then(() => pool.query('UPDATE schema_migrations SET checksum = NULL')),
    ],
  ])('waiting ends with the signal: %s', async (_, prepare) => {
    await prepare();
    await takeLock();
    const controller = new AbortController();
    const { held, done } = migrating(controller.signal);
    await held;
    controller.abort(new Error('enough'));
    await expect(done).rejects.toThrow('enough');
  });

  test('waiting ends with the lock', async () => {
    await takeLock();
    const { held, done } = migrating();
    await held;
    await holder.query('SELECT pg_advisory_unlock(7163001)');
    await done;
    expect(await appliedNames()).toEqual(known);
  });

  test('waiting ends once the schema is complete', async () => {
    await migrate(database.url);
    await pool.query('ALTER TABLE schema_migrations RENAME TO all_of_them');
    await takeLock();
    const { held, done } = migrating();
    await held;
    await pool.query('ALTER TABLE all_of_them RENAME TO schema_migrations');
    expect(await done).toEqual({ missing: [], unsealed: [], newer: [] });
  });
});
