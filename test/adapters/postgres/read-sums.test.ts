import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type pg from 'pg';
import { expect, test } from 'vitest';
import { asOther, encodeLogRow } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { latencyBucketCount, latencyPercentile } from '../../../src/adapters/postgres/latency-buckets.ts';
import { insertLogRows } from '../../../src/adapters/postgres/log-insert.ts';
import type { SumsQuery } from '../../../src/adapters/postgres/read-sums.ts';
import { readSums, slicesOf } from '../../../src/adapters/postgres/read-sums.ts';
import { sumUp } from '../../../src/adapters/postgres/rollup-keeper.ts';
import { formatMicroUsd } from '../../../src/core/answer/cost.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';
import { livingBytes } from '../../harness/measure/memory.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { logRow, tenOClockMicros } from './log-rows.ts';
import { readStats } from './stored.ts';

const database = useDatabase();
const pool = usePool(database, 4);
const hourMicros = 3_600_000_000;
const all = { since: null, until: null, groupBy: [] } as const;

async function insert(rows: readonly SettledRequest[]): Promise<void> {
  await insertLogRows(pool, rows.map(encodeLogRow));
}

test('a user without requests has zeros and no percentiles', async () => {
  expect(await readStats(pool, randomUUID(), all)).toEqual({
    since: null,
    until: null,
    group_by: [],
    totals: {
      requests: 0,
      successes: 0,
      errors: 0,
      cache_hits: 0,
      input_tokens: 0,
      output_tokens: 0,
      total_tokens: 0,
      cost_usd: '0.000000',
      saved_usd: '0.000000',
      latency_ms: { p50: null, p95: null, p99: null },
    },
    groups: [],
  });
});

test('rows that are not told apart by their model are summed under _other, each once', async () => {
  const userId = randomUUID();
  const row = (model: string, other: boolean): string => {
    const line = encodeLogRow(logRow({ userId, target: { provider: 'openai', model }, mode: 'override' }));
    return other ? asOther(line) : line;
  };
  const other = row('x-1', true);
  // A replayed line may be in one batch twice.
  await insertLogRows(pool, [row('known', false), other, other, row('x-2', true)]);
  await insertLogRows(pool, [other, row('known', false)]);
  const { totals, groups } = await readStats(pool, userId, { ...all, groupBy: ['model'] });
  expect(groups.map(({ model, requests }) => [model, requests])).toEqual([
    ['_other', 2],
    ['known', 2],
  ]);
  expect(totals).toMatchObject({ requests: 4, cost_usd: formatMicroUsd(4n * 1250n) });
  const { rows } = await pool.query('SELECT model FROM request_logs WHERE user_id = $1 ORDER BY 1', [userId]);
  expect(rows.map(({ model }) => model)).toEqual(['known', 'known', 'x-1', 'x-2']);
});

test.each([
  { name: 'wait to be summed up', summedAfter: [] },
  { name: 'are summed up in part', summedAfter: [0] },
  { name: 'are summed up together', summedAfter: [3] },
  { name: 'are summed up one by one', summedAfter: [0, 1, 2, 3] },
])('sums are exact over hours and statuses while requests $name', async ({ summedAfter }) => {
  const userId = randomUUID();
  const cachedFrom = { provider: 'openai', model: 'm', requestId: null, traceId: null } as const;
  const batches = [
    [
      logRow({ userId, costMicroUsd: 1n }),
      logRow({ userId, end: { status: 'error', error: { type: 'provider_error', message: '' } } }),
    ],
    [logRow({ userId, cachedFrom, costMicroUsd: 0n, savedMicroUsd: 7n })],
    [
      logRow({
        userId,
        costMicroUsd: 9_000_000_000_000_000_000n,
        createdAtMicros: tenOClockMicros + hourMicros,
      }),
    ],
    [logRow()],
  ];
  for (const [index, batch] of batches.entries()) {
    await insert(batch);
    if (summedAfter.includes(index)) await sumUp(pool);
  }
  const { totals } = await readStats(pool, userId, all);
  expect(totals).toMatchObject({
    requests: 4,
    successes: 3,
    errors: 1,
    cache_hits: 1,
    input_tokens: 44,
    output_tokens: 28,
    total_tokens: 72,
    cost_usd: '9000000000000.001251',
    saved_usd: '0.000007',
  });
});

test('groups add up to the totals and to the rows', async () => {
  const userId = randomUUID();
  const row = fc.record({
    provider: fc.constantFrom('openai', 'sarvam'),
    model: fc.constantFrom('a', 'b'),
    mode: fc.constantFrom('gw/cheap', 'override'),
    createdAtMicros: fc.integer({ min: 0, max: 72 }).map((hours) => tenOClockMicros + hours * hourMicros),
    costMicroUsd: fc.bigInt({ min: 0n, max: 10n ** 12n }),
  });
  const rows = fc.sample(row, 200).map((change) => logRow({ userId, ...change }));
  await insert(rows.slice(0, 100));
  await Promise.all([insert(rows.slice(100)), sumUp(pool)]);
  const cost = rows.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0n);
  for (const groupBy of [['provider'], ['day', 'model'], ['provider', 'model', 'mode', 'day']] as const) {
    const stats = await readStats(pool, userId, { ...all, groupBy });
    expect(stats.totals).toMatchObject({ requests: 200, cost_usd: formatMicroUsd(cost) });
    expect(stats.groups.reduce((sum, group) => sum + group.requests, 0)).toBe(200);
    const names = stats.groups.map((group) => groupBy.map((name) => group[name]).join());
    expect(new Set(names).size).toBe(names.length);
  }
  const { groups } = await readStats(pool, userId, { ...all, groupBy: ['day'] });
  expect(groups[0]).toMatchObject({ day: '2026-11-20' });
});

async function inSlices(userId: string, query: SumsQuery, slice: bigint) {
  const sums = await readSums(pool, userId, query, slice);
  return sums.kind === 'sums' ? { ...sums, groups: [...sums.groups] } : sums;
}

test('a long time is read in several statements, and comes to the same', async () => {
  const userId = randomUUID();
  // In an order of their own in most languages.
  const models = ['gpt-6', 'Gpt-6', 'gpt-6!'];
  const rows = Array.from({ length: 60 }, (_, index) =>
    logRow({
      userId,
      createdAtMicros: tenOClockMicros + index * 7 * hourMicros,
      target: { provider: 'openai', model: models[index % 3] as string },
      latencyMs: 10 + index * 30,
    }),
  );
  await insert(rows.slice(0, 40));
  await sumUp(pool);
  await insert(rows.slice(40));
  const from = BigInt(tenOClockMicros);
  const day = 24n * BigInt(hourMicros);
  for (const since of [null, from - 100n * day, from + 3n * day])
    for (const until of [null, from + 9n * day, from + 900n * day])
      for (const groupBy of [[], ['model'], ['day', 'model']] as const) {
        const query = { since, until, groupBy };
        const whole = await inSlices(userId, query, 10_000n * day);
        for (const slice of [day, 5n * day]) expect(await inSlices(userId, query, slice)).toEqual(whole);
      }
});

test.each([
  ['what is open', null, null, 10, [null, 20, 30, null]],
  ['no sums at all', null, null, null, [null, null]],
  ['a bound before the first sums', 0, 25, 10, [0, 20, 25]],
  ['a bound after them', 15, 25, 10, [15, 25]],
  ['a time that ends with a slice', 10, 30, 10, [10, 20, 30]],
  ['a time without any', 50, 40, 10, [50, 40]],
  ['a time that ends long after now', 10, 78_000_000, 10, [10, 20, 30, 78_000_000]],
  ['a time that begins long before the first sums', -78_000_000, 25, 10, [-78_000_000, 20, 25]],
  ['the same without sums', -78_000_000, 78_000_000, null, [-78_000_000, 78_000_000]],
])('%s is cut where its parts meet', (_, since, until, first, bounds) => {
  const micros = (hour: number | null) => (hour === null ? null : BigInt(hour) * BigInt(hourMicros));
  const nowMicros = 35n * BigInt(hourMicros);
  const slices = slicesOf(
    { since: micros(since), until: micros(until) },
    micros(first),
    10n * BigInt(hourMicros),
    nowMicros,
  );
  expect(slices).toEqual(
    bounds.slice(1).map((bound, index) => ({ since: micros(bounds[index] ?? null), until: micros(bound) })),
  );
});

test('bounds are widened to whole hours', async () => {
  const userId = randomUUID();
  await insert(
    [0, 1, 2].map((hours) => logRow({ userId, createdAtMicros: tenOClockMicros + hours * hourMicros + 5 })),
  );
  const since = BigInt(tenOClockMicros + hourMicros + 30 * 60_000_000);
  const until = since + 1n;
  const stats = await readStats(pool, userId, { since, until, groupBy: [] });
  expect(stats).toMatchObject({
    since: '2026-11-20T11:00:00.000000Z',
    until: '2026-11-20T12:00:00.000000Z',
    totals: { requests: 1 },
  });
});

test('percentiles are within their latency class', async () => {
  const userId = randomUUID();
  const latencies = Array.from({ length: 100 }, (_, index) => (index + 1) * 10);
  await insert(latencies.map((latencyMs) => logRow({ userId, latencyMs })));
  const { latency_ms } = (await readStats(pool, userId, all)).totals;
  expect(latency_ms.p50).toBeGreaterThanOrEqual(300);
  expect(latency_ms.p50).toBeLessThanOrEqual(700);
  expect(latency_ms.p99).toBeGreaterThanOrEqual(700);
  expect(latency_ms.p99).toBeLessThanOrEqual(1500);
});

test('percentiles never fall with the fraction, and an open class gives its lower bound', () => {
  const counts = fc.array(fc.nat({ max: 1000 }), {
    minLength: latencyBucketCount,
    maxLength: latencyBucketCount,
  });
  fc.assert(
    fc.property(counts, (buckets) => {
      const values = [0.5, 0.95, 0.99].map((fraction) => latencyPercentile(buckets, fraction));
      if (values.includes(null)) expect(values).toEqual([null, null, null]);
      else expect([...values].sort((a, b) => Number(a) - Number(b))).toEqual(values);
    }),
  );
  const slow = Array<number>(latencyBucketCount).fill(0);
  slow[latencyBucketCount - 1] = 3;
  expect(latencyPercentile(slow, 0.99)).toBe(500_000);
});

test('others have their turns while thousands of groups are added up', async () => {
  const sums = { requests: '1', successes: '1', cache_hits: '0', input_tokens: '1', output_tokens: '1' };
  const row = { ...sums, cost_micro_usd: '1', saved_micro_usd: '0', latency_buckets: '' };
  const rows = Array.from({ length: 5000 }, (_, index) => ({ ...row, model: `m${index}` }));
  let turns = 0;
  const count = (): void => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const answered = { query: async () => ({ rows }) } as unknown as pg.Pool;
  const stats = await readStats(answered, randomUUID(), { ...all, groupBy: ['model'] });
  clearImmediate(next);
  expect(stats.totals.requests).toBe(5000);
  expect(stats.groups).toHaveLength(5000);
  expect(turns).toBeGreaterThanOrEqual(15);
});

test('the largest answer takes less than 20 MiB while it is put together', async () => {
  const userId = randomUUID();
  const buckets = Array.from({ length: latencyBucketCount }, (_, k) => `(g * 7919 + ${k} * 104729) % 100000`);
  await pool.query(
    `INSERT INTO request_rollups (user_id, hour, provider, model, mode, lane, requests, successes, cache_hits,
       input_tokens, output_tokens, cost_micro_usd, saved_micro_usd, latency_buckets)
     SELECT $1, '2026-11-20T10:00:00Z', 'self_hosted', rpad('model-' || g, 200, 'x'), 'override', 0,
       g, g, g, g, g, g, g, ARRAY[${buckets.join(', ')}]
     FROM generate_series(1, 10000) AS g`,
    [userId],
  );
  const before = livingBytes();
  let most = 0;
  let turns = 0;
  const look = (): void => {
    turns += 1;
    // Each look collects garbage: now and then is enough, since what is kept grows and shrinks slowly.
    if (turns % 10 === 0) most = Math.max(most, livingBytes() - before);
    next = setImmediate(look);
  };
  let next = setImmediate(look);
  const answer = await readStats(pool, userId, { ...all, groupBy: ['provider', 'model', 'mode', 'day'] });
  clearImmediate(next);
  expect(answer.groups).toHaveLength(10_000);
  const text = JSON.stringify(answer);
  expect(Math.max(most, livingBytes() - before)).toBeLessThan(20 * 1024 * 1024);
  expect(JSON.parse(text)).toEqual(answer);
});
