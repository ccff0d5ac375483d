import { EventEmitter, once } from 'node:events';
import { afterEach, aroundEach, describe, expect, test } from 'vitest';
import { migrate } from '../../../src/adapters/postgres/migrate.ts';
import type { Migration } from '../../../src/adapters/postgres/migration-files.ts';
import { readMigrations } from '../../../src/adapters/postgres/migration-files.ts';
import { openSchemaGate } from '../../../src/adapters/postgres/schema-gate.ts';
import { createSystemClock } from '../../../src/adapters/system/system-clock.ts';
import { waitingLines } from '../../../src/wiring/store-lines.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';

/** What a release makes of a database that another one migrated, and how it gets past those who use it. */

const database = useDatabase(aroundEach);
const pool = usePool(database, 4, aroundEach);

const known = readMigrations();
const nextVersion = known.length + 1;
const nextName = `${String(nextVersion).padStart(4, '0')}-next.sql`;

/** The migrations of the release after this one. */
function nextRelease(sql: string): readonly Migration[] {
  return [...known, { version: nextVersion, name: nextName, sql, checksum: 'next', oldestCode: null }];
}

/** What migrate and the gate say, with an event for each line. */
function listeningLog() {
  const lines: { level: string; message: string; fields: Record<string, unknown> }[] = [];
  const events = new EventEmitter();
  const at = (level: string) => (fields: Record<string, unknown>, message: string) => {
    lines.push({ level, message, fields });
    events.emit('line');
  };
  const log = { info: at('info'), warn: at('warn') } as never;
  const said = async (text: string) => {
    for (;;) {
      const found = lines.find(({ message }) => message.includes(text));
      if (found !== undefined) return found;
      await once(events, 'line');
    }
  };
  return { log, lines, said };
}

async function checksums(): Promise<(string | null)[]> {
  const { rows } = await pool.query<{ checksum: string | null }>(
    'SELECT checksum FROM schema_migrations ORDER BY version',
  );
  return rows.map(({ checksum }) => checksum);
}

test('each file that is applied leaves its checksum', async () => {
  expect(await checksums()).toEqual(known.map(({ checksum }) => checksum));
  expect(new Set(await checksums()).size).toBe(known.length);
});

const unsealed = 'ALTER TABLE schema_migrations DROP COLUMN checksum, DROP COLUMN oldest_code';

test.each([
  ['without the columns', unsealed],
  ['with some of them', 'UPDATE schema_migrations SET checksum = NULL WHERE version > 3'],
])('checksums of a database that an older release migrated are taken on, %s', async (_, change) => {
  await pool.query(change);
  const { log, said } = listeningLog();
  await migrate(database.url, { log });
  expect(await checksums()).toEqual(known.map(({ checksum }) => checksum));
  expect((await said('taken on')).level).toBe('info');
});

test('a release before, which knows nothing of checksums, goes on to write and read the table', async () => {
  await pool.query('INSERT INTO schema_migrations (version, name) VALUES ($1, $2)', [nextVersion, nextName]);
  const { rows } = await pool.query('SELECT max(version) AS version FROM schema_migrations');
  expect(rows).toEqual([{ version: nextVersion }]);
});

describe.each([
  ['a gateway that migrates', true],
  ['a gateway that does not', false],
])('%s', (_, migrateAtBoot) => {
  let stopping = new AbortController();
  afterEach(() => {
    stopping.abort();
    stopping = new AbortController();
  });

  function open() {
    const told = listeningLog();
    const gate = openSchemaGate({
      pool,
      directUrl: database.url,
      migrateAtBoot,
      log: told.log,
      onWaiting: waitingLines(told.log, createSystemClock()),
      signal: stopping.signal,
    });
    return { gate, ...told };
  }

  const fourth = known[3]?.name ?? '';
  test.each([
    [
      'a file that was changed since',
      `UPDATE schema_migrations SET checksum = 'other' WHERE version = 4`,
      `migration ${fourth} was changed after it was applied`,
    ],
    [
      'another file of the same number',
      `UPDATE schema_migrations SET name = '0004-other.sql', checksum = NULL WHERE version = 4`,
      `migration 4 was applied as 0004-other.sql, here it is ${fourth}`,
    ],
    [
      'a file that was left out',
      'DELETE FROM schema_migrations WHERE version = 4',
      `migration ${fourth} was left out, and later ones applied`,
    ],
    [
      'a schema that took away what this release needs',
      `INSERT INTO schema_migrations (version, name, oldest_code) VALUES (${nextVersion}, '${nextName}', ${nextVersion})`,
      `migration ${nextName} was applied, after which a release works only if it knows ${nextVersion} migrations; ` +
        `this one knows ${known.length}`,
    ],
  ])('refuses %s, and names it', async (_what, change, reason) => {
    await pool.query(change);
    const { gate, said } = open();
    expect((await said('waiting for the database')).fields['reason']).toBe(reason);
    expect(gate.state()).toEqual({ ready: false, reason });
    await expect(migrate(database.url)).rejects.toThrow(reason);
  });

  test.each([
    ['one that keeps what this release needs', `${nextVersion}, '${nextName}', 'next', NULL`],
    ['one that says this release is new enough', `${nextVersion}, '${nextName}', 'next', ${known.length}`],
  ])('works on the schema of a newer release, and says so: %s', async (_what, values) => {
    await pool.query(
      `INSERT INTO schema_migrations (version, name, checksum, oldest_code) VALUES (${values})`,
    );
    const { gate, lines } = open();
    await gate.opened;
    expect(lines).toEqual([
      {
        level: 'warn',
        message: 'a newer release has migrated the database; this one works on',
        fields: { migrations: [nextName] },
      },
    ]);
    // It is not this release's to judge, or to forget.
    expect(await checksums()).toEqual([...known.map(({ checksum }) => checksum), 'next']);
  });

  test('opens on a complete schema while another process holds the lock', async () => {
    await pool.query('SELECT pg_advisory_lock(7163001)');
    await open().gate.opened;
  });

  test('says nothing of a schema of its own', async () => {
    const { gate, lines } = open();
    await gate.opened;
    expect(lines).toEqual([]);
  });
});

test('a gateway that does not migrate waits for a schema that is too old, and says what to run', async () => {
  await pool.query(`DELETE FROM schema_migrations WHERE version = ${known.length}`);
  const stopping = new AbortController();
  const { log, said } = listeningLog();
  const gate = openSchemaGate({
    pool,
    directUrl: database.url,
    migrateAtBoot: false,
    log,
    onWaiting: waitingLines(log, createSystemClock()),
    signal: stopping.signal,
  });
  const { fields } = await said('waiting for the database');
  expect(fields['reason']).toBe(
    `schema version is ${known.length - 1}, ${known.length} is needed: run "model-gateway migrate"`,
  );
  await pool.query('INSERT INTO schema_migrations (version, name) VALUES ($1, $2)', [
    known.length,
    known.at(-1)?.name,
  ]);
  await gate.opened;
  stopping.abort();
});

test('a gateway says that it waits for another process that migrates, and goes on behind it', async () => {
  await pool.query(`DELETE FROM schema_migrations WHERE version = ${known.length}`);
  const holder = await pool.connect();
  await holder.query('SELECT pg_advisory_lock(7163001)');
  const stopping = new AbortController();
  const { log, said } = listeningLog();
  const onWaiting = waitingLines(log, createSystemClock());
  const options = { pool, directUrl: database.url, migrateAtBoot: true, log, onWaiting };
  const gate = openSchemaGate({ ...options, signal: stopping.signal });
  const reason = 'another process holds the migration lock';
  expect((await said('waiting for the database')).fields).toEqual({ reason });
  expect(gate.state()).toEqual({ ready: false, reason });
  // As the other one would have left it.
  const { name, checksum } = known.at(-1) ?? {};
  const values = [known.length, name, checksum];
  await pool.query('INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)', values);
  await gate.opened;
  expect(gate.state()).toEqual({ ready: true, reason: null });
  stopping.abort();
  holder.release();
});

test('a file that does not get its lock steps back, lets others pass, and tries again', async () => {
  const reader = await pool.connect();
  await reader.query('SET idle_in_transaction_session_timeout = 0; BEGIN');
  await reader.query('LOCK TABLE users IN ACCESS SHARE MODE');
  const { log, said } = listeningLog();
  const migrations = nextRelease('ALTER TABLE users ADD COLUMN next text');
  const migrating = migrate(database.url, { log, migrations });
  const { fields } = await said(`migration ${nextName} waits for locks`);
  expect((fields['err'] as { code?: string }).code).toBe('55P03');
  // Behind a migration that queues for its lock this would wait as well.
  await pool.query('SELECT FROM users');
  await reader.query('COMMIT');
  reader.release();
  await migrating;
  expect((await pool.query('SELECT next FROM users')).rows).toEqual([]);
  expect((await said('migration applied')).fields).toMatchObject({ migration: nextName });
});

test('a statement that would keep others waiting is undone and tried again', async () => {
  await pool.query('CREATE SEQUENCE tries');
  const { log, lines } = listeningLog();
  const migrations = nextRelease(`
    ALTER TABLE users ADD COLUMN next text;
    SELECT pg_sleep(CASE WHEN nextval('tries') = 1 THEN 3600 ELSE 0 END)`);
  await migrate(database.url, { log, migrations });
  expect(lines.map(({ message }) => message)).toEqual([
    `migration ${nextName} waits for locks of others`,
    'migration applied',
  ]);
  expect(lines[0]?.fields).toHaveProperty('err.code', '57014');
  expect((await pool.query('SELECT last_value FROM tries')).rows).toEqual([{ last_value: '2' }]);
});

test('a file that cannot be applied is told at once, and leaves nothing', async () => {
  const migrations = nextRelease('CREATE TABLE next (); SELECT 1 / 0');
  await expect(migrate(database.url, { migrations })).rejects.toThrow('division by zero');
  await expect(pool.query('SELECT FROM next')).rejects.toThrow('does not exist');
  expect(await checksums()).toHaveLength(known.length);
});
