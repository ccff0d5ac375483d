import pg from 'pg';
import { aroundEach, expect, test } from 'vitest';
import { createPool, inTransaction, isAway, withDatabase } from '../../../src/adapters/postgres/pool.ts';
import { ConflictError } from '../../../src/core/errors.ts';
import { StoreAway } from '../../../src/core/store-away.ts';
import { expectInTime } from '../../harness/measure/fault-bounds.ts';
import { useDatabase, useGatewayPool } from '../../harness/servers/use-started.ts';

const database = useDatabase(aroundEach, { migrated: false });
const pool = useGatewayPool(database, 2, aroundEach);

function raise(state: string): Promise<unknown> {
  return pool.query(`DO $$ BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = '${state}'; END $$`);
}

test.each(['57P03', '53300', '53100', '57014', '08006', '25006', '42P01'])(
  'SQLSTATE %s says that the store is away',
  async (state) => {
    const refused = withDatabase(() => raise(state));
    await expect(refused).rejects.toThrow(StoreAway);
    await expect(refused).rejects.toMatchObject({ crowded: false, cause: { code: state } });
  },
);

test.each(['23505', '22021', '42601', 'P0001'])('SQLSTATE %s is not taken for an outage', async (state) => {
  await expect(withDatabase(() => raise(state))).rejects.toMatchObject({ code: state });
});

test.each(['40001', '40P01', '57P01'])(
  'work that the server undid with %s is done once more',
  async (state) => {
    let calls = 0;
    const once = withDatabase(async () => {
      calls += 1;
      if (calls === 1) await raise(state);
      return 'done';
    });
    expect(await once).toBe('done');
    calls = 0;
    const always = withDatabase(async () => {
      calls += 1;
      await raise(state);
    });
    await expect(always).rejects.toThrow(StoreAway);
    expect(calls).toBe(2);
  },
);

test('an error that is no outage passes unchanged', async () => {
  const bug = new TypeError('x is not a function');
  await expect(withDatabase(() => Promise.reject(bug))).rejects.toBe(bug);
});

test('a server that is not there is away, without the address in the message', async () => {
  const nowhere = createPool('postgres://user:hunter2@127.0.0.1:1/none', 1);
  const refused = withDatabase(() => nowhere.query('SELECT 1'));
  await expect(refused).rejects.toThrow('The database is not available. Try again shortly.');
  await nowhere.end();
});

test('two hundred callers of a pool whose connections are held wait a bounded time, and hear that the pool is crowded', async () => {
  const held = [await pool.connect(), await pool.connect()];
  const startedAtMs = performance.now();
  const outcomes = await Promise.allSettled(
    Array.from({ length: 200 }, () => withDatabase(() => pool.query('SELECT 1'))),
  );
  expectInTime(performance.now() - startedAtMs, 700);
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ reason: expect.any(StoreAway) });
    expect(outcome).toMatchObject({ reason: { crowded: true } });
  }
  for (const client of held) client.release();
  expect((await pool.query('SELECT 1')).rowCount).toBe(1);
});

test('a statement that takes too long says that the store is away, and the server ends it too', async () => {
  await expect(withDatabase(() => pool.query('SELECT pg_sleep(30)'))).rejects.toThrow(StoreAway);
  const sleeping = `SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'
    AND datname = current_database()`;
  await expect.poll(async () => (await pool.query(sleeping)).rowCount).toBe(0);
});

test('a connection that is ended while idle or in a transaction neither ends the process nor is used again', async () => {
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  const end = 'SELECT pg_terminate_backend($1)';
  const { rows } = await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  await admin.query(end, [rows[0]?.pid]);
  const lost = inTransaction(pool, async (client) => {
    const own = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    await admin.query(end, [own.rows[0]?.pid]);
    await client.query('SELECT 1');
  });
  await expect(lost).rejects.toSatisfy(isAway);
  expect((await withDatabase(() => pool.query('SELECT 1'))).rowCount).toBe(1);
  await admin.end();
});

test('a transaction that throws leaves nothing behind', async () => {
  await pool.query('CREATE TABLE things (name text UNIQUE)');
  const conflict = new ConflictError('taken', 'name');
  const failing = inTransaction(pool, async (client) => {
    await client.query(`INSERT INTO things VALUES ('one')`);
    throw conflict;
  });
  await expect(failing).rejects.toBe(conflict);
  const twice = inTransaction(pool, async (client) => {
    await client.query(`INSERT INTO things VALUES ('one')`);
    await client.query(`INSERT INTO things VALUES ('one')`);
  });
  await expect(twice).rejects.toMatchObject({ code: '23505' });
  expect((await pool.query('SELECT 1 FROM things')).rowCount).toBe(0);
});

test('of several hosts the first that is there is taken, whichever way it is asked for', async () => {
  const url = new URL(database.url);
  const gone = '127.0.0.1:1';
  const several = createPool(database.url.replace(url.host, `${gone},${gone},${url.host}`), 2);
  const said = await Promise.all([several.query('SELECT 1 AS one'), several.connect()]);
  expect(said[0].rows).toEqual([{ one: 1 }]);
  said[1].release();
  await several.end();
});

test('of several hosts that are all gone the error of the last is told, whichever way it is asked for', async () => {
  const none = createPool(database.url.replace(new URL(database.url).host, '127.0.0.1:1,127.0.0.1:2'), 2);
  await expect(none.query('SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED', port: 2 });
  await expect(none.connect()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await none.end();
});
