/** Retention goes by two clocks: what one replica's says alone drops nothing. */
import { aroundEach, expect, onTestFinished, test } from 'vitest';
import { encodeLogRow } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { insertLogRows } from '../../../src/adapters/postgres/log-insert.ts';
import { keepPartitions } from '../../../src/adapters/postgres/partition-keeper.ts';
import { maintainPartitions } from '../../../src/adapters/postgres/partitions.ts';
import { sumUp } from '../../../src/adapters/postgres/rollup-keeper.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { logRow, storedRowIds } from './log-rows.ts';

const database = useDatabase(aroundEach);
const pool = usePool(database, 4, aroundEach);
const dayMs = 86_400_000;
const retentionDays = 90;

/** One run of a replica whose clock is so far ahead; what it warned of. */
async function maintainedBy(aheadMs: number): Promise<string[]> {
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const warnings: string[] = [];
  await new Promise<void>((resolve, reject) => {
    const log = {
      debug: () => resolve(),
      warn: (what: string | object) => (typeof what === 'string' ? warnings.push(what) : reject(what)),
    };
    const wallMs = () => Date.now() + aheadMs;
    keepPartitions(pool, Promise.resolve(), retentionDays, log, stopping.signal, wallMs);
  });
  return warnings;
}

async function sums(): Promise<number> {
  const { rows } = await pool.query<{ n: number }>('SELECT sum(requests)::integer AS n FROM request_rollups');
  return rows[0]?.n ?? 0;
}

test.each([
  [
    'ahead',
    410 * dayMs,
    [expect.stringMatching(/^the clock of this replica is 354\d{5} s ahead of that of Postgres$/)],
  ],
  [
    'behind',
    -410 * dayMs,
    [expect.stringMatching(/^the clock of this replica is 354\d{5} s behind that of Postgres$/)],
  ],
  ['right', 0, []],
])('a replica whose clock is %s drops neither rows nor sums of now', async (_what, aheadMs, warned) => {
  await maintainPartitions(pool, { retentionDays, nowMs: Date.now() });
  const rows = [logRow({ createdAtMicros: Date.now() * 1000 })];
  await insertLogRows(pool, rows.map(encodeLogRow));
  await sumUp(pool);
  expect(await sums()).toBe(1);
  expect(await maintainedBy(aheadMs)).toEqual(warned);
  expect([await storedRowIds(pool), await sums()]).toEqual([rows.map(({ rowId }) => rowId), 1]);
});

test('when it was last done is known only of what succeeded', async () => {
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const told = async (on: typeof pool): Promise<number | null> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const log = { debug: () => resolve(), warn: () => resolve() };
    const wallMs = () => Date.now();
    const keptAtMs = keepPartitions(on, Promise.resolve(), retentionDays, log, stopping.signal, wallMs);
    expect(keptAtMs()).toBeNull();
    await promise;
    return keptAtMs();
  };
  const nobody = {
    connect: () => Promise.reject(new Error('permission denied')),
    query: pool.query.bind(pool),
  };
  expect(await told(nobody as unknown as typeof pool)).toBeNull();
  expect(Math.abs(Number(await told(pool)) - Date.now())).toBeLessThan(60_000);
});

test('what is past retention by both clocks goes', async () => {
  const oldMs = Date.now() - 2 * retentionDays * dayMs;
  await maintainPartitions(pool, { retentionDays, nowMs: oldMs });
  await insertLogRows(pool, [encodeLogRow(logRow({ createdAtMicros: oldMs * 1000 }))]);
  expect(await maintainedBy(0)).toEqual([]);
  expect(await storedRowIds(pool)).toEqual([]);
});
