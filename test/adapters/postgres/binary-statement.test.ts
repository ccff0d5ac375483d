/** A statement in messages of our own, beside those of `pg` on one connection of a real server, of either pool. */
import type pg from 'pg';
import { aroundAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { BinaryStatement, runStatement } from '../../../src/adapters/postgres/binary-statement.ts';
import type { PlacedConnection } from '../../../src/adapters/postgres/host-choice.ts';
import { createPool, sqlState } from '../../../src/adapters/postgres/pool.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';

const database = useDatabase();

function closing(own: pg.Pool): pg.Pool {
  onTestFinished(() => own.end());
  return own;
}

describe.each([
  ['alone', { pooled: false }],
  ['in a transaction, as a pooler needs it', { pooled: true }],
])('%s', (_how, options) => {
  const pool = usePool(database, 1, aroundAll, options);

  beforeAll(async () => {
    await pool.query('DROP TABLE IF EXISTS kept, once');
    await pool.query('CREATE TABLE kept (bytes bytea CHECK (length(bytes) <> 3))');
    await pool.query('CREATE TABLE once (bytes bytea UNIQUE DEFERRABLE INITIALLY DEFERRED)');
  });

  const keep = (value: Buffer): Promise<void> =>
    runStatement(pool, new BinaryStatement('keep', 'INSERT INTO kept SELECT $1::bytea', value));

  const keepOnce = (value: Buffer): Promise<void> =>
    runStatement(pool, new BinaryStatement('keep-once', 'INSERT INTO once SELECT $1::bytea', value));

  async function kept(): Promise<Buffer[]> {
    const { rows } = await pool.query<{ bytes: Buffer }>('DELETE FROM kept RETURNING bytes');
    return rows.map(({ bytes }) => bytes);
  }

  test('what it holds arrives, of any size, again and again, between statements of the usual sort', async () => {
    for (const size of [0, 1, 200, 300_000]) {
      const value = Buffer.alloc(size, 'é');
      await keep(value);
      expect(await kept()).toEqual([value]);
    }
    const { rows } = await pool.query('SELECT count(*)::integer AS times FROM pg_prepared_statements');
    expect(rows).toEqual([{ times: 1 }]);
  });

  test('what the server refuses is its error, and the next one is heard', async () => {
    const refused = await keep(Buffer.from('abc')).catch((reason: unknown) => reason);
    expect(sqlState(refused)).toBe('23514');
    await keep(Buffer.from('abcd'));
    expect(await kept()).toEqual([Buffer.from('abcd')]);
  });

  test('its end is not told before the server has done it', async () => {
    const other = closing(createPool(database.url, 2));
    const holder = await other.connect();
    await holder.query('BEGIN; LOCK TABLE kept IN ACCESS EXCLUSIVE MODE');
    let isDone = false;
    const done = keep(Buffer.from('late')).then(() => {
      isDone = true;
    });
    const waiting = () => other.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
    await expect.poll(async () => (await waiting()).rowCount).toBe(1);
    expect(isDone).toBe(false);
    await holder.query('COMMIT');
    holder.release();
    await done;
    expect(await kept()).toEqual([Buffer.from('late')]);
  });

  test('what is refused when it is committed is its error', async () => {
    await keepOnce(Buffer.from('one'));
    const refused = await keepOnce(Buffer.from('one')).catch((reason: unknown) => reason);
    expect(sqlState(refused)).toBe('23505');
    await pool.query('DELETE FROM once');
  });

  test('many at once wait for each other, and each ends by itself', async () => {
    const values = Array.from({ length: 50 }, (_, index) => Buffer.alloc(index + 4, index));
    const ends = await Promise.allSettled([keep(Buffer.from('abc')), ...values.map(keep)]);
    expect(ends.map(({ status }) => status)).toEqual(['rejected', ...values.map(() => 'fulfilled')]);
    expect((await kept()).map(({ length }) => length).sort((a, b) => a - b)).toEqual(
      values.map(({ length }) => length),
    );
  });

  test('a connection that is lost under it ends it', async () => {
    const statement = new BinaryStatement('sleep', 'SELECT pg_sleep(length($1::bytea))', Buffer.alloc(30));
    const ended = expect(runStatement(pool, statement)).rejects.toThrow();
    const other = closing(createPool(database.url, 1));
    await expect
      .poll(async () => {
        const { rowCount } = await other.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'",
        );
        return rowCount;
      })
      .toBe(1);
    await ended;
    await keep(Buffer.from('after'));
    expect(await kept()).toEqual([Buffer.from('after')]);
  });

  test('one that no connection is to be had for ends too', async () => {
    const nowhere = closing(createPool('postgres://user@127.0.0.1:1/none', 1, options));
    const statement = new BinaryStatement('keep', 'SELECT $1::bytea', Buffer.alloc(1));
    await expect(runStatement(nowhere, statement)).rejects.toThrow();
  });

  test('a connection that is lost just before it ends it, and the next one is heard', async () => {
    pool.once('acquire', (client) => (client as unknown as PlacedConnection).cut());
    await expect(keep(Buffer.from('lost'))).rejects.toThrow();
    await keep(Buffer.from('after'));
    expect(await kept()).toEqual([Buffer.from('after')]);
  });
});
