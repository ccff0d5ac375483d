import { aroundEach, beforeEach, expect, test } from 'vitest';
import { encodeLogRow } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { insertLogRows } from '../../../src/adapters/postgres/log-insert.ts';
import { buildOnlineIndexes, onlineIndexes } from '../../../src/adapters/postgres/online-indexes.ts';
import { maintainPartitions } from '../../../src/adapters/postgres/partitions.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { logRow, storedRowIds, tenOClockMicros } from './log-rows.ts';

/** An index of request_logs is built while rows are written. */

const database = useDatabase(aroundEach);
const pool = usePool(database, 4, aroundEach);
const nowMs = tenOClockMicros / 1000;
const weekMs = 7 * 86_400_000;
const index = {
  name: 'request_logs_by_model',
  table: 'request_logs',
  columns: '(model, created_at DESC)',
} as const;

const build = () => buildOnlineIndexes(database.url, [index]);
const insert = () => insertLogRows(pool, [encodeLogRow(logRow())]);

beforeEach(async () => {
  await maintainPartitions(pool, { retentionDays: 90, nowMs });
  await insert();
});

/** Partitions in all, and those that have the index, valid and attached. */
async function covered(): Promise<{ partitions: number; indexed: number; valid: boolean | undefined }> {
  const { rows } = await pool.query<{ partitions: number; indexed: number; valid: boolean }>(
    `SELECT (SELECT count(*) FROM pg_inherits WHERE inhparent = 'request_logs'::regclass)::integer AS partitions,
       (SELECT count(*) FROM pg_inherits JOIN pg_index ON indexrelid = inhrelid AND indisvalid
        WHERE inhparent = to_regclass($1))::integer AS indexed,
       (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)) AS valid`,
    [index.name],
  );
  return rows[0] as Awaited<ReturnType<typeof covered>>;
}

test('every week has it, those made later too, and a second run has nothing to do', async () => {
  await build();
  expect(await covered()).toEqual({ partitions: 8, indexed: 8, valid: true });
  await build();
  await maintainPartitions(pool, { retentionDays: 90, nowMs: nowMs + weekMs });
  expect(await covered()).toEqual({ partitions: 9, indexed: 9, valid: true });
});

test('rows are written all the while, also behind one whose transaction is open', async () => {
  const writer = await pool.connect();
  await writer.query('SET idle_in_transaction_session_timeout = 0; BEGIN');
  await writer.query('LOCK TABLE request_logs_20261116 IN ROW EXCLUSIVE MODE');
  const building = build();
  await eventually(async () => {
    const { rows } = await pool.query(
      `SELECT FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'
         AND application_name = 'model-gateway-indexes'`,
    );
    return rows.length > 0 || undefined;
  });
  await insert();
  await insert();
  await writer.query('COMMIT');
  writer.release();
  await building;
  expect(await covered()).toMatchObject({ indexed: 8, valid: true });
  expect(await storedRowIds(pool)).toHaveLength(3);
});

test('what a killed build left is made anew', async () => {
  await pool.query(`CREATE INDEX ${index.name} ON ONLY request_logs ${index.columns}`);
  const left = 'request_logs_20261116_by_model';
  await pool.query(`CREATE INDEX ${left} ON request_logs_20261116 ${index.columns}`);
  await pool.query(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = '${left}'::regclass`);
  await build();
  expect(await covered()).toEqual({ partitions: 8, indexed: 8, valid: true });
});

test('of several replicas one builds', async () => {
  await Promise.all([build(), build(), build()]);
  await build();
  expect(await covered()).toEqual({ partitions: 8, indexed: 8, valid: true });
});

test('the indexes of this release begin with the name of their table, as their parts do', () => {
  for (const { name, table } of onlineIndexes) expect(name).toMatch(new RegExp(`^${table}_`));
});
