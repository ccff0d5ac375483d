import { randomUUID } from 'node:crypto';
import { aroundEach, expect, test } from 'vitest';
import { encodedColumns, encodeLogRow } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { insertLogRows } from '../../../src/adapters/postgres/log-insert.ts';
import { SpoolReplay } from '../../../src/adapters/postgres/spool-replay.ts';
import { openSpool } from '../../../src/adapters/spool/spool-slots.ts';
import { noUsage } from '../../../src/core/answer/usage.ts';
import { newRowType } from '../../../src/core/log/log-columns.ts';
import { useDatabase, useFolder, usePool } from '../../harness/servers/use-started.ts';
import { logRow } from './log-rows.ts';

const database = useDatabase(aroundEach);
const pool = usePool(database, 2, aroundEach);
const folder = useFolder(aroundEach);

const spoolFolder = () => ({ directory: folder.path, maxBytes: 1024 * 1024 });
const onBrokenSpool = (path: string, reason: string): never => expect.unreachable(`${path}: ${reason}`);

const print = (rows: readonly string[]): never => expect.unreachable(rows.join());

const stored = async (rowId: string, columns: string): Promise<unknown> => {
  const { rows } = await pool.query(`SELECT ${columns} FROM request_logs WHERE row_id = $1`, [rowId]);
  return rows[0];
};
const storedKeyId = (rowId: string): Promise<unknown> => stored(rowId, 'key_id');

/** Of a table or type, with their types, in its order. */
async function columnsOf(relation: string): Promise<readonly string[]> {
  const { rows } = await pool.query<{ column: string }>(
    `SELECT attname || ' ' || format_type(atttypid, null) AS column
     FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
    [relation],
  );
  return rows.map(({ column }) => column);
}

test('the table of columns is what the log has, in the order of the type of new rows', async () => {
  const ours = encodedColumns.map(({ name, type }) => `${name} ${type}`);
  const created = 'created_at timestamp with time zone';
  expect(await columnsOf(newRowType)).toEqual([created, 'is_other boolean', ...ours]);
  expect((await columnsOf('request_logs')).toSorted()).toEqual(['id bigint', created, ...ours].toSorted());
});

test('the key that served is on the row, and null where none did', async () => {
  const keyId = randomUUID();
  const rows = [logRow({ keyId }), logRow({ keyId: null })] as const;
  expect(await insertLogRows(pool, rows.map(encodeLogRow))).toBe(2);
  expect(await storedKeyId(rows[0].rowId)).toEqual({ key_id: keyId });
  expect(await storedKeyId(rows[1].rowId)).toEqual({ key_id: null });
});

test.each([
  ['complete', true],
  ['partial', true],
  ['none', false],
] as const)('usage that is %s says so', async (basis, reported) => {
  const row = logRow({ usage: { ...noUsage, basis } });
  await insertLogRows(pool, [encodeLogRow(row)]);
  expect(await stored(row.rowId, 'usage_basis, usage_reported')).toEqual({
    usage_basis: basis,
    usage_reported: reported,
  });
});

test('a line that an earlier release spooled, without columns that came later, is replayed', async () => {
  const row = logRow();
  const {
    key_id: _key,
    usage_basis: _basis,
    residency_bound_by: _binder,
    ...earlier
  } = JSON.parse(encodeLogRow(row)) as Record<string, unknown>;
  const spool = await openSpool(spoolFolder());
  await spool.append(JSON.stringify(earlier));
  const replay = new SpoolReplay({ pool, spool, folder: spoolFolder(), onBrokenSpool, print });
  await replay.run(false, AbortSignal.timeout(10_000), () => {});
  await spool.close();
  expect([replay.replayed, replay.bad]).toEqual([1, 0]);
  expect(await stored(row.rowId, 'key_id, usage_basis, residency_bound_by')).toEqual({
    key_id: null,
    usage_basis: null,
    residency_bound_by: null,
  });
});

test.each([
  { name: 'none', already: [0, 0, 0], counted: 3 },
  { name: 'one', already: [0, 1, 0], counted: 2 },
  { name: 'all', already: [1, 1, 1], counted: 0 },
])('of three spooled rows of which Postgres holds $name, those are counted that it lacked', async (given) => {
  const rows = given.already.map(() => encodeLogRow(logRow()));
  const present = rows.filter((_row, index) => given.already[index] === 1);
  await insertLogRows(pool, present);
  const spool = await openSpool(spoolFolder());
  for (const row of rows) await spool.append(row);
  const replay = new SpoolReplay({ pool, spool, folder: spoolFolder(), onBrokenSpool, print });
  await replay.run(false, AbortSignal.timeout(10_000), () => {});
  expect(spool.bytes).toBe(0);
  await spool.close();
  expect(replay.replayed).toBe(given.counted);
});
