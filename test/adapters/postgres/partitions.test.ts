import { aroundEach, expect, test } from 'vitest';
import { advisoryLocks } from '../../../src/adapters/postgres/advisory-locks.ts';
import { encodeLogRow } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { insertLogRows } from '../../../src/adapters/postgres/log-insert.ts';
import { maintainPartitions } from '../../../src/adapters/postgres/partitions.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { logRow, storedRowIds, tenOClockMicros } from './log-rows.ts';

const database = useDatabase(aroundEach);
/** As many as run at once below: a wait for the pool itself has a limit, which is not what is tested here. */
const callers = 30;
const pool = usePool(database, callers, aroundEach);
const nowMs = tenOClockMicros / 1000; // a Friday
const dayMs = 86_400_000;

async function rowsPerPartition(): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ name: string; rows: number }>(
    'SELECT tableoid::regclass::text AS name, count(*)::integer AS rows FROM request_logs GROUP BY 1',
  );
  return Object.fromEntries(rows.map((row) => [row.name, row.rows]));
}

async function attachedWeeks(): Promise<readonly string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT inhrelid::regclass::text AS name FROM pg_inherits
     WHERE inhparent = 'request_logs'::regclass ORDER BY 1`,
  );
  return rows.map(({ name }) => name);
}

async function insertAt(...daysFromNow: number[]): Promise<void> {
  const rows = daysFromNow.map((days) => logRow({ createdAtMicros: (nowMs + days * dayMs) * 1000 }));
  await insertLogRows(pool, rows.map(encodeLogRow));
}

test('weeks are made from the last one to five ahead, once', async () => {
  const report = await maintainPartitions(pool, { retentionDays: 90, nowMs });
  expect(report.dropped).toEqual([]);
  expect(report.created).toEqual([
    'request_logs_20261109',
    'request_logs_20261116',
    'request_logs_20261123',
    'request_logs_20261130',
    'request_logs_20261207',
    'request_logs_20261214',
    'request_logs_20261221',
  ]);
  expect(await maintainPartitions(pool, { retentionDays: 90, nowMs })).toEqual({
    created: [],
    dropped: [],
    complete: true,
  });
});

test('rows that came before their partition move into it', async () => {
  await insertAt(0, 0, 7, 300);
  expect(await rowsPerPartition()).toEqual({ request_logs_default: 4 });
  await maintainPartitions(pool, { retentionDays: 90, nowMs });
  expect(await rowsPerPartition()).toEqual({
    request_logs_20261116: 2,
    request_logs_20261123: 1,
    request_logs_default: 1,
  });
});

test('a moved row is still inserted once', async () => {
  const row = logRow({ createdAtMicros: tenOClockMicros });
  await insertLogRows(pool, [encodeLogRow(row)]);
  await maintainPartitions(pool, { retentionDays: 90, nowMs });
  expect(await insertLogRows(pool, [encodeLogRow(row)])).toBe(0);
  expect(await storedRowIds(pool)).toEqual([row.rowId]);
});

test('retention drops a week once all of it is too old, and old rows of the default partition', async () => {
  await maintainPartitions(pool, { retentionDays: 30, nowMs });
  await insertAt(-5, 0, -40);
  const kept = await maintainPartitions(pool, { retentionDays: 30, nowMs: nowMs + 31 * dayMs });
  expect(kept.dropped).toEqual(['request_logs_20261109']);
  const later = await maintainPartitions(pool, { retentionDays: 30, nowMs: nowMs + 32 * dayMs });
  expect(later.dropped).toEqual([]);
  expect(await rowsPerPartition()).toEqual({ request_logs_20261116: 1 });
});

test('ten replicas at once make each week once, while rows are inserted', async () => {
  const runs = Array.from({ length: 10 }, () => maintainPartitions(pool, { retentionDays: 90, nowMs }));
  const inserts = Array.from({ length: callers - runs.length }, (_, index) => insertAt(index));
  const reports = await Promise.all(runs);
  await Promise.all(inserts);
  await maintainPartitions(pool, { retentionDays: 90, nowMs });
  expect(await storedRowIds(pool)).toHaveLength(20);
  const created = reports.flatMap((report) => report.created);
  expect(new Set(created).size).toBe(created.length);
});

test('a run beside that of another replica is not complete', async () => {
  const client = await pool.connect();
  await client.query(`BEGIN; SELECT pg_advisory_xact_lock(${advisoryLocks.partitions})`);
  try {
    const { complete } = await maintainPartitions(pool, { retentionDays: 90, nowMs });
    expect(complete).toBe(false);
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
});

test('a locked table makes the run fail soon, and the next one completes it', async () => {
  const client = await pool.connect();
  await client.query('BEGIN');
  await client.query('LOCK TABLE request_logs_default IN ACCESS SHARE MODE');
  await expect(maintainPartitions(pool, { retentionDays: 90, nowMs })).rejects.toThrow('lock timeout');
  await client.query('ROLLBACK');
  client.release();
  // The server may take a moment to let go of the failed transaction's lock; until then a run does nothing.
  const report = await eventually(async () => {
    const next = await maintainPartitions(pool, { retentionDays: 90, nowMs });
    return next.created.length > 0 ? next : undefined;
  });
  expect(report.created).toHaveLength(7);
});

test('a week whose name is taken keeps neither the others nor retention back', async () => {
  await maintainPartitions(pool, { retentionDays: 30, nowMs });
  const later = nowMs + 32 * dayMs;
  await pool.query('CREATE TABLE request_logs_20261228 (of text)');
  await expect(maintainPartitions(pool, { retentionDays: 30, nowMs: later })).rejects.toThrow(
    'relation "request_logs_20261228" already exists',
  );
  const weeks = await attachedWeeks();
  expect(weeks).toContain('request_logs_20270118');
  expect(weeks).not.toContain('request_logs_20261228');
  expect(weeks).not.toContain('request_logs_20261109');
});

test('a week is dropped, and rows come in, while old sums cannot be deleted', async () => {
  await maintainPartitions(pool, { retentionDays: 30, nowMs });
  const client = await pool.connect();
  await client.query('BEGIN');
  await client.query('LOCK TABLE request_rollups IN SHARE MODE');
  const later = nowMs + 38 * dayMs;
  await expect(maintainPartitions(pool, { retentionDays: 30, nowMs: later })).rejects.toThrow('lock timeout');
  await insertAt(38);
  await client.query('ROLLBACK');
  client.release();
  expect(await attachedWeeks()).not.toContain('request_logs_20261109');
});
