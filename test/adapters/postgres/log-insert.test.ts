import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LogRow } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { lineOf } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { insertLogRows, newRowsInto } from '../../../src/adapters/postgres/log-insert.ts';
import { createPool, isDataError } from '../../../src/adapters/postgres/pool.ts';
import { noUsage } from '../../../src/core/answer/usage.ts';
import { logColumnNames, newRowType } from '../../../src/core/log/log-columns.ts';
import { residencyBinders } from '../../../src/core/request/residency.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';
import { cacheResults } from '../../../src/core/settled-request.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { logRow, rolledUp } from './log-rows.ts';

const database = useDatabase();
const pool = usePool(database, 2);

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

test('a row is the same by either way, whatever it says', async () => {
  const insert = newRowsInto(pool);
  const world = fc.asyncProperty(change, fc.boolean(), async (fields, isOther) => {
    const userId = randomUUID();
    const fast = rowOf({ ...fields, userId }, isOther);
    await insert([fast]);
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
  await newRowsInto(pool)(rows);
  expect(await rolledUp(pool)).toBe(before + 200);
  expect(await stored(rows[1] as LogRow)).toMatchObject({ model: long.target.model });
});

test('rows that the replay was faster with keep the others of their batch from nothing', async () => {
  const before = await rolledUp(pool);
  const rows = [rowOf(), rowOf(), rowOf()];
  await insertLogRows(pool, [lineOf(rows[1] as LogRow)]);
  await newRowsInto(pool)(rows);
  for (const row of rows) await stored(row);
  expect(await rolledUp(pool)).toBe(before + 3);
});

test.each([
  ['latency beyond its column', { latencyMs: 2 ** 40 }],
  ['a count that is no integer', { usage: { ...noUsage, inputTokens: 1.5 } }],
  ['a cost beyond its column', { costMicroUsd: 2n ** 63n }],
  ['an id that is none', { rowId: 'x' }],
  ['a null where there must be a value', { userId: null as never }],
])('%s is refused as data, and nothing is kept of its batch', async (_name, fields) => {
  const before = await rolledUp(pool);
  const error = await newRowsInto(pool)([rowOf(), rowOf(fields)]).catch((reason: unknown) => reason);
  expect(isDataError(error)).toBe(true);
  expect(await rolledUp(pool)).toBe(before);
});

test('a database that was made anew, with another type, takes rows', async () => {
  const own = createPool(database.url, 1);
  const insert = newRowsInto(own);
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
  await own.end();
});

test('a row that the release before sends, by its own type, is taken beside ours', async () => {
  const { residency_bound_by: _unknown, ...earlier } = JSON.parse(lineOf(rowOf())) as Record<string, unknown>;
  const names = Object.keys(earlier).filter((name) => name !== 'created_micros');
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
