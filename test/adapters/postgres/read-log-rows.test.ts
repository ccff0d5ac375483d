import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { encodeLogRow } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { insertLogRows } from '../../../src/adapters/postgres/log-insert.ts';
import { maintainPartitions } from '../../../src/adapters/postgres/partitions.ts';
import { encodeLogCursor } from '../../../src/core/log/log-cursor.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';
import type { LogPage } from '../../../src/http/schemas/log-schemas.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { logRow, storedRowIds, tenOClockMicros } from './log-rows.ts';
import { readLogs } from './stored.ts';

const database = useDatabase();
const pool = usePool(database, 4);

beforeAll(async () => {
  await maintainPartitions(pool, { retentionDays: 90, nowMs: tenOClockMicros / 1000 });
});

function insert(rows: readonly SettledRequest[]): Promise<number> {
  return insertLogRows(pool, rows.map(encodeLogRow));
}

async function walk(userId: string, limit: number, since: bigint | null = null): Promise<LogPage['data']> {
  const all: LogPage['data'] = [];
  let cursor: string | null = null;
  for (let first = true; first || cursor !== null; first = false) {
    const page: LogPage = await readLogs(pool, userId, { since: first ? since : null, limit, cursor });
    expect(page.next_cursor === null).toBe(page.data.length < limit);
    all.push(...page.data);
    cursor = page.next_cursor;
  }
  return all;
}

test('a row shows exactly the fields of the specification', async () => {
  const userId = randomUUID();
  await insert([
    logRow({
      userId,
      createdAtMicros: tenOClockMicros + 123_456,
      costMicroUsd: 12_345_678n,
      end: { status: 'error', error: { type: 'provider_error', message: 'no answer' } },
      residencyBound: 'india',
      residencyActual: 'india',
    }),
  ]);
  const { data, next_cursor } = await readLogs(pool, userId, { since: null, limit: 100, cursor: null });
  expect(next_cursor).toBeNull();
  expect(data).toEqual([
    {
      id: expect.any(Number),
      mode: 'gw/balanced',
      provider: 'openai',
      model: 'gpt-test',
      input_tokens: 11,
      output_tokens: 7,
      latency_ms: 120,
      cost_usd: '12.345678',
      cache_hit: false,
      status: 'error',
      error: 'provider_error: no answer',
      residency_requested: 'india',
      residency_actual: 'india',
      created_at: '2026-11-20T10:00:00.123456Z',
    },
  ]);
});

test('microseconds and hostile text survive the way through Postgres', async () => {
  const instant = fc.integer({ min: 0, max: 4_000_000_000_000_000 });
  await fc.assert(
    fc.asyncProperty(instant, fc.string({ unit: 'binary' }), async (createdAtMicros, text) => {
      const userId = randomUUID();
      const target = { provider: 'openai', model: text } as const;
      const end = { status: 'error', error: { type: 'provider_error', message: text } } as const;
      const candidates = [
        { kind: 'passed-over', ...target, reason: 'capability', detail: 'vision', before: 0 },
      ] as const;
      await insert([logRow({ userId, createdAtMicros, target, end, candidates })]);
      const { rows } = await pool.query<{ micros: string; model: string }>(
        `SELECT (extract(epoch FROM created_at) * 1000000)::bigint AS micros, model
         FROM request_logs WHERE user_id = $1`,
        [userId],
      );
      const model = text.toWellFormed().replaceAll('\0', '\uFFFD');
      expect(rows).toEqual([{ micros: String(createdAtMicros), model }]);
    }),
    { numRuns: 50, examples: [[0, '\0\ud800 \\u0000 \u2028 "']] },
  );
});

test('rows of the same microsecond and a full last page are walked once each, newest first', async () => {
  const userId = randomUUID();
  const rows = Array.from({ length: 30 }, (_, index) =>
    logRow({ userId, createdAtMicros: tenOClockMicros + Math.floor(index / 5) }),
  );
  await insert([...rows.slice(10), ...rows.slice(0, 10), logRow()]);
  for (const limit of [1, 3, 5, 10, 15, 30, 31, 1000]) {
    const walked = await walk(userId, limit);
    const keys = walked.map((row) => [row.created_at, row.id] as const);
    const sorted = [...keys].sort(([a, x], [b, y]) => (a === b ? y - x : a < b ? 1 : -1));
    expect(keys).toEqual(sorted);
    expect(new Set(walked.map((row) => row.id)).size).toBe(30);
  }
});

test('since is inclusive to the microsecond and is carried by the cursor', async () => {
  const userId = randomUUID();
  await insert(
    Array.from({ length: 10 }, (_, index) => logRow({ userId, createdAtMicros: tenOClockMicros + index })),
  );
  const since = BigInt(tenOClockMicros) + 4n;
  expect(await walk(userId, 2, since)).toHaveLength(6);
  expect(await walk(userId, 3, since)).toHaveLength(6);
  expect(await walk(userId, 1000, since + 6n)).toHaveLength(0);
});

test('nobody sees the rows of another, whatever the cursor', async () => {
  const [owner, stranger] = [randomUUID(), randomUUID()];
  await insert(Array.from({ length: 5 }, () => logRow({ userId: owner })));
  const { next_cursor } = await readLogs(pool, owner, { since: null, limit: 2, cursor: null });
  const page: LogPage = await readLogs(pool, stranger, { since: null, limit: 100, cursor: next_cursor });
  expect(page).toEqual({ data: [], next_cursor: null });
});

test('extreme cursors are only misplaced', async () => {
  const query = { since: null, limit: 10 };
  for (const createdAtMicros of [-62_135_596_800_000_000n, 253_402_300_799_999_999n]) {
    const place = { createdAtMicros, id: 2n ** 63n - 1n, sinceMicros: createdAtMicros };
    const cursor = encodeLogCursor({ ...place, requestId: null });
    expect((await readLogs(pool, randomUUID(), { ...query, cursor })).data).toEqual([]);
  }
});

test('a row is stored and summed up once, however often it is inserted', async () => {
  const userId = randomUUID();
  const rows = Array.from({ length: 20 }, () => logRow({ userId }));
  const before = await storedRowIds(pool);
  const inserted = await Promise.all([insert(rows), insert([...rows].reverse()), insert(rows.slice(5))]);
  expect(inserted.reduce((sum, count) => sum + count, 0)).toBe(20);
  expect((await storedRowIds(pool)).length - before.length).toBe(20);
  const { rows: sums } = await pool.query(
    'SELECT count(*)::integer AS requests, sum(input_tokens)::integer AS tokens FROM unsummed_requests WHERE user_id = $1',
    [userId],
  );
  expect(sums).toEqual([{ requests: 20, tokens: 220 }]);
});

describe('the page query', () => {
  test('reads by its index in every partition, first page and later ones', async () => {
    const cursor = { micros: tenOClockMicros + 500_000, id: 1 };
    const sql = `EXPLAIN (FORMAT TEXT) SELECT id FROM request_logs
      WHERE user_id = '${randomUUID()}' AND created_at >= '-infinity'
        AND created_at <= to_timestamp(${cursor.micros} / 1e6)
        AND (created_at, id) < (to_timestamp(${cursor.micros} / 1e6), ${cursor.id})
      ORDER BY created_at DESC, id DESC LIMIT 100`;
    const client = await pool.connect();
    // With as few rows as in a test the planner would rather read the whole table.
    await client.query('SET enable_seqscan = off');
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(sql);
    client.release(true);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toMatch(/Index (Only )?Scan using request_logs_\d{8}_user_id_created_at_id_idx/);
    expect(plan).not.toContain('Seq Scan');
    expect(plan).not.toContain('Sort  ');
    // Weeks after the cursor are not even opened.
    expect(plan).not.toContain('request_logs_20261130');
  });
});
