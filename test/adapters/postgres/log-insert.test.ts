import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import type { LogRow } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { lineOf } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { insertLogRows, newRowsInto } from '../../../src/adapters/postgres/log-insert.ts';
import { createPool, isAway, isDataError, sqlState } from '../../../src/adapters/postgres/pool.ts';
import { noUsage } from '../../../src/core/answer/usage.ts';
import { logColumnNames, logColumns, newRowType } from '../../../src/core/log/log-columns.ts';
import { residencyBinders } from '../../../src/core/request/residency.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';
import { cacheResults } from '../../../src/core/settled-request.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { logRow, rolledUp } from './log-rows.ts';

const database = useDatabase();
const pool = usePool(database, 2);

/** What the fast way refused; it is told of, since the rows are there all the same. */
let refused: unknown[];
const insertNew = newRowsInto(pool, (error) => refused.push(error));
beforeEach(() => {
  refused = [];
});

const rowOf = (change: Partial<SettledRequest> = {}, isOther = false): LogRow => ({
  settled: logRow(change),
  isOther,
});
const columns = logColumnNames.map((name) => `request_logs.${name}::text`).join(', ');

/** The row, and what it leaves to be summed, as text. */
async function stored({ settled }: LogRow): Promise<unknown> {
  const { rows } = await pool.query(
    `SELECT request_logs.created_at::text, ${columns}, unsummed_requests::text AS unsummed
     FROM request_logs JOIN unsummed_requests USING (user_id) WHERE row_id = $1`,
    [settled.rowId],
  );
  expect(rows).toHaveLength(1);
  return rows[0];
}

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.constantFrom('\0', '\ud800', 'é"\\\n'),
);
const count = fc.oneof(fc.nat(), fc.maxSafeNat());
const micros = fc.oneof(
  fc.bigInt({ min: 0n, max: 10n ** 6n }),
  fc.constantFrom(0n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 62n, 2n ** 63n - 1n, -1n),
);
const change = fc.record({
  createdAtMicros: fc.integer({ min: 0, max: 4_102_444_800_000_000 }),
  target: fc.option(fc.record({ provider: fc.constantFrom('openai', 'sarvam'), model: anyText })),
  keyId: fc.option(fc.uuid()),
  residencyBoundBy: fc.option(fc.constantFrom(...residencyBinders)),
  traceId: fc.option(fc.stringMatching(/^[0-9a-f]{32}$/)),
  latencyMs: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  ttftMs: fc.option(fc.nat()),
  costMicroUsd: micros,
  savedMicroUsd: micros,
  stream: fc.boolean(),
  usage: fc.record({ inputTokens: count, outputTokens: count }).map((some) => ({ ...noUsage, ...some })),
  end: fc.oneof(
    fc.constant({ status: 'success' } as const),
    anyText.map((message) => ({ status: 'error', error: { type: 'provider_error', message } }) as const),
  ),
  tier: fc.option(
    fc.array(
      anyText.map((model) => ({ provider: 'openai', model }) as const),
      { maxLength: 3 },
    ),
  ),
  cache: fc.constantFrom(...cacheResults),
});

/** No text of Postgres holds it; the slow way puts another character there. */
const hasNul = (settled: SettledRequest): boolean =>
  logColumnNames.some((name) => {
    const { kind, of } = logColumns[name];
    return kind !== 'json' && String(of(settled)).includes('\0');
  });

test('a row is the same by either way, whatever it says', async () => {
  const world = fc.asyncProperty(change, fc.boolean(), async (fields, isOther) => {
    const userId = randomUUID();
    const fast = rowOf({ ...fields, userId }, isOther);
    refused = [];
    await insertNew([fast]);
    expect(refused).toHaveLength(hasNul(fast.settled) ? 1 : 0);
    const seen = await stored(fast);
    await pool.query('DELETE FROM request_logs; DELETE FROM unsummed_requests');
    await insertLogRows(pool, [lineOf(fast)]);
    expect(seen).toEqual(await stored(fast));
  });
  await fc.assert(world, { numRuns: 40 });
});

test('rows are committed together, however many and long they are', async () => {
  const before = await rolledUp(pool);
  const long = { target: { provider: 'openai', model: 'é'.repeat(5_000) } } as const;
  const rows = [rowOf(), rowOf(long), ...Array.from({ length: 198 }, () => rowOf())];
  await insertNew(rows);
  expect(refused).toEqual([]);
  expect(await rolledUp(pool)).toBe(before + 200);
  expect(await stored(rows[1] as LogRow)).toMatchObject({ model: long.target.model });
});

test('rows that the replay was faster with keep the others of their batch from nothing', async () => {
  const before = await rolledUp(pool);
  const rows = [rowOf(), rowOf(), rowOf()];
  await insertLogRows(pool, [lineOf(rows[1] as LogRow)]);
  await insertNew(rows);
  expect(refused).toHaveLength(1);
  for (const row of rows) await stored(row);
  expect(await rolledUp(pool)).toBe(before + 3);
});

test('rows go in by the order of their ids either way, so that two writers of the same ones never wait in a circle', async () => {
  const batch = (): LogRow[] => Array.from({ length: 20 }, () => rowOf());
  const [fast, slow] = [batch(), batch()];
  await insertNew(fast);
  await insertLogRows(pool, slow.map(lineOf));
  expect(refused).toEqual([]);
  for (const rows of [fast, slow]) {
    const ids = rows.map(({ settled }) => settled.rowId);
    const { rows: found } = await pool.query<{ row_id: string }>(
      'SELECT row_id FROM request_logs WHERE row_id = ANY($1) ORDER BY id',
      [ids],
    );
    expect(found.map((row) => row.row_id)).toEqual(ids.toSorted());
  }
});

test.each([
  ['latency beyond its column', { latencyMs: 2 ** 40 }],
  ['a count that is no integer', { usage: { ...noUsage, inputTokens: 1.5 } }],
  ['a cost beyond its column', { costMicroUsd: 2n ** 63n }],
  ['an id that is none', { rowId: 'x' }],
  ['a null where there must be a value', { userId: null as never }],
])('%s is refused as data, and nothing is kept of its batch', async (_name, fields) => {
  const before = await rolledUp(pool);
  const error = await insertNew([rowOf(), rowOf(fields)]).catch((reason: unknown) => reason);
  expect(isDataError(error)).toBe(true);
  expect(refused).toHaveLength(1);
  expect(await rolledUp(pool)).toBe(before);
});

test.each([
  ['no partition for it', '', false],
  ['a check against it', 'CREATE TABLE part PARTITION OF parted DEFAULT;', true],
])('a row with %s is refused as data: %s', async (_name, partition, isData) => {
  const own = createPool(database.url, 1);
  const error = await own
    .query(
      `BEGIN; CREATE TABLE parted (n int CHECK (n > 1)) PARTITION BY RANGE (n); ${partition} INSERT INTO parted VALUES (${isData ? 0 : 2})`,
    )
    .catch((reason: unknown) => reason);
  await own.end();
  expect(sqlState(error)).toBe('23514');
  expect(isDataError(error)).toBe(isData);
  expect(isAway(error), 'else the slow insert would not be tried').toBe(false);
});

test('a database that was made anew, with another type, takes rows', async () => {
  const own = createPool(database.url, 1);
  const insert = newRowsInto(own, (error) => refused.push(error));
  await insert([rowOf()]);
  const { rows } = await pool.query<{ columns: string }>(
    `SELECT string_agg(attname || ' ' || format_type(atttypid, null), ', ' ORDER BY attnum) AS columns
     FROM pg_attribute WHERE attrelid = '${newRowType}'::regclass`,
  );
  await pool.query(`DROP TYPE ${newRowType}; CREATE TYPE ${newRowType} AS (${rows[0]?.columns})`);
  await pool.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`);
  await expect.poll(() => own.totalCount).toBe(0);
  for (let batch = 0; batch < 3; batch += 1) {
    const row = rowOf();
    await insert([row]);
    await stored(row);
  }
  // Once, by a server that compares the types of a database's own; later ones do not.
  expect(refused.length).toBeLessThanOrEqual(1);
  await own.end();
});

test('a fast way that is dead is told of with every batch, which is kept by the slow one', async () => {
  await pool.query(`ALTER TYPE ${newRowType} RENAME TO renamed`);
  const insert = newRowsInto(pool, (error) => refused.push(error));
  for (let batch = 1; batch <= 3; batch += 1) {
    const row = rowOf();
    await insert([row]);
    await stored(row);
    expect(refused).toHaveLength(batch);
  }
  expect(String(refused[0])).toContain(`type "${newRowType}" does not exist`);
  await pool.query(`ALTER TYPE renamed RENAME TO ${newRowType}`);
  await insert([rowOf()]);
  expect(refused).toHaveLength(3);
});

test('a row that cannot be told is named, and refuses the fast way to the others of its batch alone', async () => {
  const untold = rowOf({ usage: null as never });
  const rows = [rowOf(), untold, rowOf(), untold];
  expect(await insertNew(rows)).toEqual([1, 3]);
  expect(refused).toHaveLength(1);
  for (const row of [rows[0], rows[2]]) await stored(row as LogRow);
  expect(await insertNew([untold])).toEqual([0]);
  expect(await insertNew([rowOf()])).toEqual([]);
  expect(refused).toHaveLength(2);
});

test('a row that the first release sends, by its own type, is taken beside ours', async () => {
  const earlier = JSON.parse(lineOf(rowOf())) as Record<string, unknown>;
  const { rows: attributes } = await pool.query<{ name: string }>(
    `SELECT attname AS name FROM pg_attribute WHERE attrelid = 'new_log_row'::regclass`,
  );
  const known = new Set(attributes.map(({ name }) => name));
  const names = Object.keys(earlier).filter((name) => known.has(name) && name !== 'created_micros');
  await pool.query(
    `INSERT INTO request_logs (created_at, ${names})
     SELECT now(), ${names} FROM json_populate_record(null::new_log_row, $1)`,
    [JSON.stringify(earlier)],
  );
  const { rows } = await pool.query('SELECT residency_bound_by AS by FROM request_logs WHERE row_id = $1', [
    earlier['row_id'],
  ]);
  expect(rows).toEqual([{ by: null }]);
});
