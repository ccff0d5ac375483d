import { randomUUID } from 'node:crypto';
import { aroundEach, expect, test } from 'vitest';
import { newRowsInto } from '../../../src/adapters/postgres/log-insert.ts';
import { sumUp } from '../../../src/adapters/postgres/rollup-keeper.ts';
import { summedColumns, unsummedColumns } from '../../../src/adapters/postgres/rollup-sums.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { logRow } from './log-rows.ts';
import { readStats } from './stored.ts';

const database = useDatabase(aroundEach);
const pool = usePool(database, 8, aroundEach);

const unrefused = (error: unknown): never => expect.unreachable(String(error));

const waiting = async (): Promise<number> => {
  const { rows } = await pool.query<{ count: number }>('SELECT count(*)::integer FROM unsummed_requests');
  return rows[0]?.count ?? 0;
};

test('whoever sums up, and whenever it is read, statistics have every committed request once', async () => {
  const userId = randomUUID();
  const insert = newRowsInto(pool, unrefused);
  const requests = async (): Promise<number> => {
    const query = { since: null, until: null, groupBy: [] } as const;
    return (await readStats(pool, userId, query)).totals.requests;
  };
  let begun = 0;
  let committed = 0;
  const write = async (): Promise<void> => {
    for (let batch = 1; batch <= 40; batch += 1) {
      begun += batch;
      await insert(Array.from({ length: batch }, () => ({ settled: logRow({ userId }), isOther: false })));
      committed += batch;
    }
  };
  let writing = true;
  const during = async (work: () => Promise<unknown>): Promise<void> => {
    while (writing) await work();
  };
  const look = async (): Promise<void> => {
    const least = committed;
    const seen = await requests();
    expect(seen).toBeGreaterThanOrEqual(least);
    expect(seen).toBeLessThanOrEqual(begun);
  };
  const replicas = [during(look), during(() => sumUp(pool)), during(() => sumUp(pool))];
  await Promise.all([write(), write()]).finally(() => {
    writing = false;
  });
  await Promise.all(replicas);
  await sumUp(pool);
  expect(await waiting()).toBe(0);
  expect(await requests()).toBe(committed);
});

test('more than one statement takes are summed up all the same', async () => {
  const insert = newRowsInto(pool, unrefused);
  const userId = randomUUID();
  for (let batch = 0; batch < 6; batch += 1) {
    await insert(Array.from({ length: 1000 }, () => ({ settled: logRow({ userId }), isOther: false })));
  }
  expect(await sumUp(pool)).toBe(6_000);
  expect(await waiting()).toBe(0);
  expect(await sumUp(pool)).toBe(0);
});

test('while another replica sums up, nothing is done twice and nobody waits', async () => {
  await newRowsInto(pool, unrefused)([{ settled: logRow(), isOther: false }]);
  const other = await pool.connect();
  await other.query('BEGIN; SELECT pg_advisory_xact_lock(7163003)');
  expect(await sumUp(pool)).toBe(0);
  expect(await waiting()).toBe(1);
  await other.query('COMMIT');
  other.release();
  expect(await sumUp(pool)).toBe(1);
});

/** A null would make the sum of its hour null for good. */
test.each([
  ['request_rollups', summedColumns],
  ['unsummed_requests', unsummedColumns],
])('no column of %s that is summed up may be null', async (table, columns) => {
  const { rows } = await pool.query<{ column_name: string }>(
    `SELECT column_name FROM information_schema.columns
     WHERE table_schema = current_schema() AND table_name = $1 AND is_nullable = 'NO'`,
    [table],
  );
  expect(rows.map((row) => row.column_name)).toEqual(expect.arrayContaining([...columns]));
});
