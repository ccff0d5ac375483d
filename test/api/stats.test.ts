/** GET /v1/stats: the caller's sums, equal to the log rows to the last digit. */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { chat, chatOk, logRowsOnceThere, streamed } from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { registerUser } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { answer, failure } from '../harness/vendors/vendor-plans.ts';
import type { LogRowBody } from '../harness/vendors/wire-types.ts';
import { costPattern } from '../harness/vendors/wire-types.ts';

interface Sums {
  readonly requests: number;
  readonly successes: number;
  readonly errors: number;
  readonly cache_hits: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
  readonly cost_usd: string;
  readonly saved_usd: string;
  readonly latency_ms: {
    readonly p50: number | null;
    readonly p95: number | null;
    readonly p99: number | null;
  };
}

interface Stats {
  readonly since: string | null;
  readonly until: string | null;
  readonly group_by: readonly string[];
  readonly totals: Sums;
  readonly groups: readonly (Sums & Readonly<Record<string, unknown>>)[];
}

const gateway = useGateway();
const user = useUser(gateway);
let rows: readonly LogRowBody[];

/** Micro-dollars of a six-decimal string, exactly. */
const micro = (cost: string) => BigInt(cost.replace('.', ''));
const dollars = (value: bigint) => {
  const digits = value.toString().padStart(7, '0');
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
};

const stats = async (query = '', owner = user): Promise<Stats> => {
  const response = await owner.client.get(`/v1/stats${query}`);
  expect(response.status, response.text).toBe(200);
  return response.json<Stats>();
};

function sumsOf(some: readonly LogRowBody[]) {
  const add = (pick: (row: LogRowBody) => number) => some.reduce((sum, row) => sum + pick(row), 0);
  return {
    requests: some.length,
    successes: some.filter((row) => row.status === 'success').length,
    errors: some.filter((row) => row.status !== 'success').length,
    cache_hits: some.filter((row) => row.cache_hit).length,
    input_tokens: add((row) => row.input_tokens),
    output_tokens: add((row) => row.output_tokens),
    total_tokens: add((row) => row.input_tokens + row.output_tokens),
    cost_usd: dollars(some.reduce((sum, row) => sum + micro(row.cost_usd), 0n)),
  };
}

beforeAll(async () => {
  for (let index = 0; index < 12; index += 1) {
    const usage = {
      prompt_tokens: 37 * index + 1,
      completion_tokens: 3 * index,
      total_tokens: 40 * index + 1,
    };
    gateway.vendors.openai.script(answer({ usage }));
    await chatOk(user.client, { model: index % 2 === 0 ? 'gw/balanced' : 'gw/cheap' });
  }
  await chatOk(user.client, { model: 'gw/premium' });
  await streamed(user.client, {}, { 'x-gateway-override-model': 'sarvam:sarvam-test' });
  const question = { messages: [{ role: 'user', content: randomUUID() }] };
  for (let index = 0; index < 3; index += 1)
    await chatOk(user.client, question, { 'x-gateway-cache': 'true' });
  gateway.vendors.openai.script(failure(400));
  await chat(user.client, {}, { 'x-gateway-override-model': 'openai:gpt-test' });
  rows = await logRowsOnceThere(user.client, 18);
  await eventually(async () => ((await stats()).totals.requests === rows.length ? true : undefined));
});

describe('GET /v1/stats', () => {
  test('totals equal the sums of the rows', async () => {
    const { totals } = await stats();
    expect(totals).toMatchObject(sumsOf(rows));
    expect(totals.requests).toBe(18);
    expect(totals.cache_hits).toBe(2);
    expect(totals.cost_usd).toMatch(costPattern);
  });

  test('shows what the cache saved', async () => {
    const paid = rows.find((row) => !row.cache_hit && row.provider === 'openai' && row.input_tokens === 11);
    expect((await stats()).totals.saved_usd).toBe(dollars(2n * micro(paid?.cost_usd ?? '')));
  });

  test('shows latency percentiles in order', async () => {
    const { p50, p95, p99 } = (await stats()).totals.latency_ms;
    expect(p50).not.toBeNull();
    expect(p50 ?? 0).toBeGreaterThanOrEqual(0);
    expect(p95 ?? 0).toBeGreaterThanOrEqual(p50 ?? 0);
    expect(p99 ?? 0).toBeGreaterThanOrEqual(p95 ?? 0);
  });

  test.each([['provider'], ['model'], ['mode']] as const)(
    'grouped by %s adds up, group by group',
    async (name) => {
      const body = await stats(`?group_by=${name}`);
      expect(body.group_by).toEqual([name]);
      const values = [...new Set(rows.map((row) => row[name]))].sort();
      expect(body.groups.map((group) => group[name]).sort()).toEqual(values);
      for (const group of body.groups)
        expect(group).toMatchObject(sumsOf(rows.filter((row) => row[name] === group[name])));
      expect(body.totals).toMatchObject(sumsOf(rows));
    },
  );

  test('grouped by several names at once, day included', async () => {
    const body = await stats('?group_by=provider,mode,day');
    expect(body.group_by).toEqual(['provider', 'mode', 'day']);
    for (const group of body.groups) {
      expect(group['day']).toMatch(/^\d{4}-\d\d-\d\d$/);
      const same = rows.filter(
        (row) =>
          row.provider === group['provider'] &&
          row.mode === group['mode'] &&
          row.created_at.startsWith(String(group['day'])),
      );
      expect(group).toMatchObject(sumsOf(same));
    }
    expect(body.groups.reduce((sum, group) => sum + group.requests, 0)).toBe(rows.length);
  });

  test('is limited by since and until', async () => {
    const at = (hours: number) => encodeURIComponent(new Date(Date.now() + hours * 3_600_000).toISOString());
    expect((await stats(`?since=${at(-2)}&until=${at(2)}`)).totals.requests).toBe(rows.length);
    expect((await stats(`?since=${at(2)}`)).totals.requests).toBe(0);
    expect((await stats(`?until=${at(-2)}`)).totals.requests).toBe(0);
  });

  test.each([
    ['since=0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000000Z', null],
    ['until=9999-12-31T23:59:59Z', null, '9999-12-31T23:59:59.999999Z'],
    ['until=9999-12-31T22:59:59Z', null, '9999-12-31T23:00:00.000000Z'],
    [
      'since=2026-11-20T10:30:00Z&until=2026-11-20T10:30:00Z',
      '2026-11-20T10:00:00.000000Z',
      '2026-11-20T11:00:00.000000Z',
    ],
  ])('says which bounds were applied: ?%s', async (query, since, until) => {
    expect(await stats(`?${query}`)).toMatchObject({ since, until });
  });

  test('is zeros for a user without requests', async () => {
    const { totals, groups } = await stats('?group_by=provider', await registerUser(gateway.url));
    expect(totals).toMatchObject({
      requests: 0,
      cost_usd: '0.000000',
      saved_usd: '0.000000',
      input_tokens: 0,
    });
    expect(totals.latency_ms).toEqual({ p50: null, p95: null, p99: null });
    expect(groups).toEqual([]);
  });

  test.each([
    ['group_by=vendor', 'group_by'],
    ['group_by=user_id', 'group_by'],
    ['group_by=provider,', 'group_by'],
    ['group_by=provider,provider', 'group_by'],
    ["group_by=provider'--", 'group_by'],
    ['since=yesterday', 'since'],
    ['since=2026-11-20T10:00:00', 'since'],
    ['until=infinity', 'until'],
    ['until=', 'until'],
    ['since=2026-11-20T10:00:00Z&until=2026-11-20T09:59:59Z', 'until'],
  ])('refuses ?%s with 422', async (query, param) => {
    expectInvalid(await user.client.get(`/v1/stats?${query}`), param);
  });

  test('needs a service key', async () => {
    expectError(await httpClient(gateway.url).get('/v1/stats'), {
      status: 401,
      type: 'authentication_error',
    });
  });
});
