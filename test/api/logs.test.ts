/** SPEC 4.6 and 2.5: the request logs. */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { chat, chatOk, logRows, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { failure } from '../harness/vendors/vendor-plans.ts';
import type { LogPage, LogRowBody } from '../harness/vendors/wire-types.ts';
import { costPattern, microsecondsPattern } from '../harness/vendors/wire-types.ts';

const gateway = useGateway();
/** Holds seven rows from the start. */
const user = useUser(gateway);

beforeAll(async () => {
  for (let index = 0; index < 7; index += 1)
    await chatOk(user.client, {}, { 'x-request-id': `seed-${index}` });
  await logRowsOnceThere(user.client, 7);
});

const page = async (query: string, owner = user): Promise<LogPage> => {
  const response = await owner.client.get(`/v1/logs${query}`);
  expect(response.status, response.text).toBe(200);
  return response.json<LogPage>();
};

async function walk(limit: number, owner = user, start = ''): Promise<LogRowBody[][]> {
  const pages: LogRowBody[][] = [];
  let cursor: string | null = null;
  do {
    const next: LogPage = await page(
      `?limit=${limit}${start}${cursor === null ? '' : `&cursor=${cursor}`}`,
      owner,
    );
    pages.push([...next.data]);
    cursor = next.next_cursor;
  } while (cursor !== null);
  return pages;
}

describe('a log row', () => {
  test('has exactly the specified fields', async () => {
    const [row] = await logRowsOnceThere(user.client, 7);
    expect(Object.keys(row ?? {}).sort()).toEqual([
      'cache_hit',
      'cost_usd',
      'created_at',
      'error',
      'id',
      'input_tokens',
      'latency_ms',
      'mode',
      'model',
      'output_tokens',
      'provider',
      'residency_actual',
      'residency_requested',
      'status',
    ]);
    expect(row).toMatchObject({
      mode: 'gw/balanced',
      provider: 'openai',
      model: 'gpt-test',
      input_tokens: 11,
      output_tokens: 7,
      cache_hit: false,
      status: 'success',
      error: null,
      residency_requested: null,
      residency_actual: 'global',
    });
    expect(Number.isSafeInteger(row?.id)).toBe(true);
    expect(Number.isInteger(row?.latency_ms)).toBe(true);
    expect(row?.cost_usd).toMatch(costPattern);
    expect(row?.created_at).toMatch(microsecondsPattern);
  });

  test('equals the gateway block of its answer', async () => {
    const owner = await registerWithKeys(gateway.url);
    const { gateway: block } = await chatOk(owner.client, { model: 'gw/premium' });
    const [row] = await logRowsOnceThere(owner.client, 1);
    expect(row).toMatchObject({
      mode: block.mode,
      provider: block.provider,
      model: block.model,
      cost_usd: block.cost_usd,
      cache_hit: block.cache_hit,
      residency_actual: block.residency_actual,
      latency_ms: block.latency_ms,
    });
  });

  test('says override for an override, and india when it was asked for', async () => {
    const owner = await registerWithKeys(gateway.url);
    await chatOk(
      owner.client,
      {},
      { 'x-gateway-override-model': 'sarvam:sarvam-test', 'x-gateway-residency': 'india' },
    );
    expect((await logRowsOnceThere(owner.client, 1))[0]).toMatchObject({
      mode: 'override',
      residency_requested: 'india',
      residency_actual: 'india',
    });
  });

  test('exists for a refusal for want of residency or of a key, with provider and model none', async () => {
    const owner = await registerUser(gateway.url);
    await chat(owner.client, {}, { 'x-gateway-residency': 'india' });
    await chat(owner.client);
    const [noKey, residency] = await logRowsOnceThere(owner.client, 2);
    expect(residency).toMatchObject({
      provider: 'none',
      model: 'none',
      status: 'error',
      residency_requested: 'india',
      residency_actual: 'india',
      input_tokens: 0,
      cost_usd: '0.000000',
    });
    expect(residency?.error).toMatch(/^residency_error: /);
    expect(noKey).toMatchObject({
      provider: 'none',
      model: 'none',
      status: 'error',
      residency_actual: 'global',
    });
    expect(noKey?.error).toMatch(/^invalid_request_error: /);
  });

  test('does not exist for a body or header that was refused', async () => {
    const owner = await registerWithKeys(gateway.url);
    await chat(owner.client, { temperature: 9 });
    await chat(owner.client, {}, { 'x-gateway-cache-ttl': 'abc' });
    expect(await logRows(owner.client)).toEqual([]);
  });

  test('exists for an override that failed, once', async () => {
    const owner = await registerWithKeys(gateway.url);
    gateway.vendors.openai.script(failure(429));
    await chat(owner.client, {}, { 'x-gateway-override-model': 'openai:gpt-test' });
    const rows = await logRowsOnceThere(owner.client, 1);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({
      mode: 'override',
      provider: 'openai',
      model: 'gpt-test',
      status: 'error',
    });
    expect(rows[0]?.error).toBeTypeOf('string');
    expect((rows[0]?.error ?? '').length).toBeLessThanOrEqual(500);
  });
});

describe('GET /v1/logs', () => {
  test('lists newest first', async () => {
    const rows = await logRows(user.client);
    expect(rows).toHaveLength(7);
    const keys = rows.map((row) => `${row.created_at} ${String(row.id).padStart(20, '0')}`);
    expect(keys).toEqual([...keys].sort().reverse());
  });

  test('shows nobody else’s rows', async () => {
    const owner = await registerUser(gateway.url);
    expect(await page('', owner)).toEqual({ data: [], next_cursor: null });
  });

  test('answers with data and next_cursor only, not to be cached', async () => {
    const response = await user.client.get('/v1/logs');
    expect(Object.keys(response.json<object>()).sort()).toEqual(['data', 'next_cursor']);
    expect(response.headers['cache-control']).toMatch(/no-store/);
  });

  test('needs a service key', async () => {
    expectError(await httpClient(gateway.url).get('/v1/logs?limit=0'), {
      status: 401,
      type: 'authentication_error',
    });
  });

  test.each([1, 2, 3, 6, 7, 8, 1000])(
    'walked %d at a time yields every row once, in order',
    async (limit) => {
      const all = (await page('')).data;
      const pages = await walk(limit);
      expect(pages.flat()).toEqual(all);
      for (const rows of pages.slice(0, -1)) expect(rows).toHaveLength(limit);
      expect(pages.at(-1)?.length).toBe(7 % limit);
    },
  );

  test('sets next_cursor on a page of exactly limit rows, and the next one is empty', async () => {
    const full = await page('?limit=7');
    expect(full.data).toHaveLength(7);
    expect(full.next_cursor).toBeTypeOf('string');
    expect(full.next_cursor).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(await page(`?limit=7&cursor=${full.next_cursor}`)).toEqual({ data: [], next_cursor: null });
  });

  test('a page with fewer rows is the last', async () => {
    expect((await page('?limit=8')).next_cursor).toBeNull();
  });

  test('is stable while new rows arrive', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    for (let index = 0; index < 4; index += 1) await chatOk(owner.client);
    await logRowsOnceThere(owner.client, 4);
    const before = (await page('', owner)).data;
    const first = await page('?limit=2', owner);
    await chatOk(owner.client);
    const second = await page(`?limit=2&cursor=${first.next_cursor}`, owner);
    expect([...first.data, ...second.data]).toEqual(before);
  });

  test('returns 100 rows by default', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    await Promise.all(Array.from({ length: 101 }, () => chatOk(owner.client)));
    await logRowsOnceThere(owner.client, 101);
    const first = await page('', owner);
    expect(first.data).toHaveLength(100);
    expect((await page(`?cursor=${first.next_cursor}`, owner)).data).toHaveLength(1);
    expect((await page('?limit=1000', owner)).data).toHaveLength(101);
    const walked = (await walk(7, owner)).flat();
    expect(new Set(walked.map((row) => row.id)).size).toBe(101);
  });

  test.each(['1', '1000'])('takes limit %s', async (limit) => {
    await page(`?limit=${limit}`);
  });

  test.each(['1001', '0', '-1', 'abc', '1.5', '', '1e2', '0x10', '99999999999999999999', 'NaN'])(
    'refuses limit %j with 422',
    async (limit) => {
      expectInvalid(await user.client.get(`/v1/logs?limit=${encodeURIComponent(limit)}`), 'limit');
    },
  );

  test('refuses a parameter given twice', async () => {
    expectInvalid(await user.client.get('/v1/logs?limit=1&limit=2'), 'limit');
  });
});

describe('since', () => {
  test('is inclusive, to the microsecond', async () => {
    const all = (await page('')).data;
    const third = all[2] as LogRowBody;
    const same = await page(`?since=${encodeURIComponent(third.created_at)}`);
    expect(same.data).toEqual(all.filter((row) => row.created_at >= third.created_at));
    expect(same.data).toContainEqual(third);
  });

  test.each([
    ['Z', (at: Date) => at.toISOString()],
    [
      'an offset',
      (at: Date) => new Date(at.getTime() + 5.5 * 3_600_000).toISOString().replace('Z', '+05:30'),
    ],
    ['no fraction', (at: Date) => at.toISOString().replace(/\.\d+Z$/, 'Z')],
  ])('may be written with %s', async (_name, write) => {
    const past = write(new Date(Date.now() - 3_600_000));
    const future = write(new Date(Date.now() + 3_600_000));
    expect((await page(`?since=${encodeURIComponent(past)}`)).data).toHaveLength(7);
    expect((await page(`?since=${encodeURIComponent(future)}`)).data).toEqual([]);
  });

  test('stays in force on the pages that follow', async () => {
    const all = (await page('')).data;
    const since = `&since=${encodeURIComponent((all[4] as LogRowBody).created_at)}`;
    const expected = all.filter((row) => row.created_at >= (all[4] as LogRowBody).created_at);
    const first = await page(`?limit=2${since}`);
    const rest = await page(`?limit=100&cursor=${first.next_cursor}`);
    expect([...first.data, ...rest.data]).toEqual(expected);
  });

  test.each([
    'yesterday',
    'tomorrow',
    'now',
    'infinity',
    '2026-11-20',
    '2026-11-20T10:00:00',
    '2026-13-01T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '2026-11-20T25:00:00Z',
    '1790000000',
    '',
    "2026-11-20T10:00:00Z'; SELECT pg_sleep(5)--",
    '2026-11-20T10:00:00Z\u0000',
  ])('refuses %j with 422', async (since) => {
    expectInvalid(await user.client.get(`/v1/logs?since=${encodeURIComponent(since)}`), 'since');
  });
});

describe('a cursor', () => {
  const seal = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

  test.each([
    ['empty', ''],
    ['no base64', '***'],
    ['base64 of nothing sensible', 'AAAA'],
    ['an empty object', seal({})],
    ['a null', seal(null)],
    ['an array', seal([])],
    ['a number', seal(1)],
    ['huge numbers', seal({ id: '9223372036854775808', created_at: '9999999999999999' })],
    ['SQL', seal({ id: "1' OR '1'='1", created_at: 'x' })],
    ['10 KB', 'A'.repeat(10_000)],
    ['a NUL', '%00'],
    ['standard base64 with padding', 'YQ=='],
  ])('that is %s is refused with 422', async (_name, cursor) => {
    expectInvalid(await user.client.get(`/v1/logs?cursor=${cursor}`), 'cursor');
  });

  test('with any one character changed gives 422 or own rows, never a server error', async () => {
    const { next_cursor: cursor } = await page('?limit=3');
    const own = new Set((await page('')).data.map((row) => row.id));
    const text = cursor ?? '';
    const variants = Array.from({ length: text.length }, (_, index) => {
      const other = text[index] === 'A' ? 'B' : 'A';
      return text.slice(0, index) + other + text.slice(index + 1);
    });
    variants.push(text.slice(0, -1), text.slice(1), text + text);
    for (const variant of variants) {
      const response = await user.client.get(`/v1/logs?cursor=${variant}`);
      expect([200, 422], `${variant}: ${response.text}`).toContain(response.status);
      if (response.status !== 200) continue;
      for (const row of response.json<LogPage>().data) expect(own.has(row.id)).toBe(true);
    }
  });

  test('of another user opens no door', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    await chatOk(owner.client);
    await logRowsOnceThere(owner.client, 1);
    const { next_cursor: foreign } = await page('?limit=1');
    const response = await owner.client.get(`/v1/logs?cursor=${foreign}`);
    expect(response.status).toBe(200);
    const own = (await page('', owner)).data.map((row) => row.id);
    for (const row of response.json<LogPage>().data) expect(own).toContain(row.id);
  });
});

describe('rows under load', () => {
  test('are one for each of 200 requests, answered or not', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    gateway.vendors.openai.when('fail-me', failure(500));
    const ids = Array.from({ length: 200 }, () => randomUUID());
    await Promise.all(
      ids.map((id, index) =>
        chat(
          owner.client,
          { messages: [{ role: 'user', content: index % 4 === 0 ? 'fail-me' : 'hello' }] },
          { 'x-request-id': id },
        ),
      ),
    );
    const rows = await logRowsOnceThere(owner.client, 200);
    expect(rows).toHaveLength(200);
    expect(rows.filter((row) => row.status === 'error')).toHaveLength(50);
    expect(new Set(rows.map((row) => row.id)).size).toBe(200);
  });
});
