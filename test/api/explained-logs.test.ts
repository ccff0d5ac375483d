/** Beside SPEC 4.6: why a request went as it did, and the tables' version on each answer. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { chat, chatBody, chatOk, chatPath, logRowsOnceThere, streamed } from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import type { HttpClient } from '../harness/gateway/http-client.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { addKey, registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { tables } from '../harness/gateway/tables.ts';
import { toldAddressClass } from '../harness/gateway/upstream-client.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { answer, failure, tokensThen } from '../harness/vendors/vendor-plans.ts';
import { gate, heldBy } from '../harness/vendors/vendor-reply.ts';
import type { KeyRecord, LogPage, LogRowBody } from '../harness/vendors/wire-types.ts';

const gateway = useGateway();
const user = useUser(gateway);

interface Explained extends LogRowBody {
  readonly tables_version: string;
  readonly [name: string]: unknown;
}

/** The rows of one request, as the list finds them. */
const rowsOf = (client: HttpClient, requestId: string) =>
  eventually(async () => {
    const response = await client.get(`/v1/logs?request_id=${requestId}`);
    expect(response.status, response.text).toBe(200);
    const { data } = response.json<LogPage>();
    return data.length > 0 ? data : undefined;
  });

async function explained(client: HttpClient, requestId: string): Promise<Explained> {
  const [row] = await rowsOf(client, requestId);
  const response = await client.get(`/v1/logs/${row?.id}`);
  expect(response.status, response.text).toBe(200);
  return response.json<Explained>();
}

const keyOf = async (client: HttpClient, provider: string): Promise<string | undefined> =>
  (await client.get('/v1/keys')).json<KeyRecord[]>().find((key) => key.provider === provider)?.id;

const asked = (): { id: string; headers: Record<string, string> } => {
  const id = randomUUID();
  return { id, headers: { 'x-request-id': id } };
};

describe('a row explains itself', () => {
  test('with the fields of the list, and what the answer said', async () => {
    const { id, headers } = asked();
    const response = await chat(user.client, {}, headers);
    const row = await explained(user.client, id);
    const [listed] = await rowsOf(user.client, id);
    expect(row).toMatchObject({ ...listed });
    expect(row).toMatchObject({
      request_id: id,
      trace_id: null,
      tables_version: response.headers['x-gateway-tables-version'],
      stream: false,
      ttft_ms: null,
      key_id: await keyOf(user.client, 'openai'),
      residency_bound_by: null,
      saved_usd: '0.000000',
      cache: null,
      usage: {
        basis: 'complete',
        cached_input_tokens: 0,
        cache_write_tokens: 0,
        cache_write_long_tokens: 0,
        reasoning_tokens: 0,
      },
    });
  });

  test('by the order of its tier, and what became of each candidate', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai', 'anthropic']);
    gateway.vendors.openai.script(failure(503));
    const { id, headers } = asked();
    await chatOk(owner.client, {}, headers);
    const row = await explained(owner.client, id);
    expect(row['candidates']).toEqual([
      { provider: 'openai', model: 'gpt-test', fate: 'tried' },
      { provider: 'sarvam', model: 'sarvam-test', fate: 'no_key' },
      { provider: 'anthropic', model: 'claude-test', fate: 'tried' },
    ]);
    const latency_ms = expect.any(Number);
    expect(row['attempts']).toEqual([
      {
        provider: 'openai',
        model: 'gpt-test',
        status: 503,
        reason: expect.stringMatching(/^upstream-failed: /),
        latency_ms,
        residency: 'global',
        declared_region: null,
        address_class: toldAddressClass(),
        key_id: await keyOf(owner.client, 'openai'),
        usage: null,
      },
      {
        provider: 'anthropic',
        model: 'claude-test',
        status: 200,
        reason: 'served',
        latency_ms,
        residency: 'global',
        declared_region: null,
        address_class: toldAddressClass(),
        key_id: await keyOf(owner.client, 'anthropic'),
        usage: { basis: 'complete', input_tokens: row.input_tokens, output_tokens: row.output_tokens },
      },
    ]);
  });

  test.each<[name: string, body: object, headers: Record<string, string>, fates: readonly string[]]>([
    ['that were not needed', {}, {}, ['tried', 'not_reached', 'not_reached']],
    ['outside India', {}, { 'x-gateway-residency': 'india' }, ['residency', 'tried', 'residency']],
    ['that lack what is asked', { n: 2 }, {}, ['tried', 'not_reached', 'capability']],
  ])('with candidates %s', async (_name, body, more, fates) => {
    const { id, headers } = asked();
    await chatOk(user.client, { ...body }, { ...headers, ...more });
    const { candidates } = await explained(user.client, id);
    expect((candidates as { fate: string }[]).map(({ fate }) => fate)).toEqual(fates);
  });

  test.each<[name: string, tokens: number, rates: object]>([
    ['the row', 11, { input: '1', output: '5', cached_input: '0.1' }],
    ['the rates of long contexts', 10_001, { input: '2', output: '7.5', cached_input: '0.2' }],
  ])('by the price: %s', async (_name, prompt, rates) => {
    gateway.vendors.openai.script(
      answer({ usage: { prompt_tokens: prompt, completion_tokens: 7, total_tokens: prompt + 7 } }),
    );
    const { id, headers } = asked();
    await chatOk(user.client, {}, headers);
    expect((await explained(user.client, id))['price']).toMatchObject({ model: 'gpt-test', ...rates });
  });

  test('without a price where there is none', async () => {
    const { id, headers } = asked();
    await chatOk(
      user.client,
      { model: 'gw/cheap' },
      { ...headers, 'x-gateway-override-model': 'openai:none' },
    );
    expect(await explained(user.client, id)).toMatchObject({
      price: null,
      cost_usd: '0.000000',
      candidates: null,
    });
  });

  test('by the cache: nothing there, then the request that had made the answer', async () => {
    const question = { messages: [{ role: 'user', content: `q ${randomUUID()}` }] };
    const [first, second] = [asked(), asked()];
    const cache = { 'x-gateway-cache': 'true' };
    await chatOk(user.client, question, { ...first.headers, ...cache });
    expect(await explained(user.client, first.id)).toMatchObject({ cache: { result: 'miss', from: null } });
    await chatOk(user.client, question, { ...second.headers, ...cache });
    expect(await explained(user.client, second.id)).toMatchObject({
      cache: {
        result: 'hit',
        from: { provider: 'openai', model: 'gpt-test', request_id: first.id, trace_id: null },
      },
      price: null,
      attempts: [],
      key_id: null,
    });
  });

  test('when nobody could be asked', async () => {
    const owner = await registerUser(gateway.url);
    const { id, headers } = asked();
    await chat(owner.client, {}, headers);
    const row = await explained(owner.client, id);
    expect(row).toMatchObject({ status: 'error', attempts: [], price: null, key_id: null });
    expect((row['candidates'] as { fate: string }[]).map(({ fate }) => fate)).toEqual(
      Array(3).fill('no_key'),
    );
  });

  test('when its stream was cut: with the key, and what had been stated', async () => {
    gateway.vendors.openai.script(tokensThen(2, 'reset'));
    const { id, headers } = asked();
    const stream = await streamed(user.client, {}, headers);
    expect(stream.error).not.toBeNull();
    expect(await explained(user.client, id)).toMatchObject({
      status: 'incomplete',
      stream: true,
      ttft_ms: expect.any(Number),
      attempts: [
        { status: 200, reason: expect.stringMatching(/^cut: /), key_id: await keyOf(user.client, 'openai') },
      ],
    });
  });

  test('when a self_hosted server was asked, by its key and where it stands', async () => {
    const owner = await registerUser(gateway.url);
    const base_url = `${gateway.vendors.openai.url}/v1`;
    const body = { provider: 'self_hosted', api_key: 'x', base_url, declared_region: 'ap-south-1' };
    const key = await addKey(owner, body);
    const { id, headers } = asked();
    await chatOk(owner.client, {}, { ...headers, 'x-gateway-override-model': 'self_hosted:m' });
    expect(await explained(owner.client, id)).toMatchObject({
      mode: 'override',
      attempts: [
        {
          residency: 'india',
          declared_region: 'ap-south-1',
          address_class: toldAddressClass(),
          key_id: key.id,
          reason: 'served',
        },
      ],
    });
  });
});

describe('rows are found', () => {
  test('by the id of their request, which may be repeated, page by page', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    const { id, headers } = asked();
    for (let index = 0; index < 3; index += 1) await chatOk(owner.client, {}, headers);
    await chatOk(owner.client);
    await logRowsOnceThere(owner.client, 4);
    const first = (await owner.client.get(`/v1/logs?limit=2&request_id=${id}`)).json<LogPage>();
    expect(first.data).toHaveLength(2);
    // The cursor alone carries the id on.
    const rest = await owner.client.get(`/v1/logs?limit=2&cursor=${first.next_cursor}`);
    expect(rest.json<LogPage>()).toMatchObject({ data: [expect.anything()], next_cursor: null });
    expect(Object.keys(first.data[0] ?? {})).toHaveLength(14);
  });

  test.each(['', 'a b', 'ä', 'x'.repeat(129)])('never by the malformed id %j', async (id) => {
    expectInvalid(await user.client.get(`/v1/logs?request_id=${encodeURIComponent(id)}`), 'request_id');
  });

  test('by their owner only', async () => {
    const stranger = await registerUser(gateway.url);
    const { id, headers } = asked();
    await chatOk(user.client, {}, headers);
    const [row] = await rowsOf(user.client, id);
    expectError(await stranger.client.get(`/v1/logs/${row?.id}`), { status: 404, type: 'not_found_error' });
    expect((await stranger.client.get(`/v1/logs?request_id=${id}`)).json<LogPage>().data).toEqual([]);
    expectError(await httpClient(gateway.url).get(`/v1/logs/${row?.id}`), {
      status: 401,
      type: 'authentication_error',
    });
  });

  test.each(['0', '999999999999', '9223372036854775808', '-1', '1.5', 'abc', '1%20OR%201', '%00'])(
    'never by %s, which is no id of a row',
    async (id) => {
      expectError(await user.client.get(`/v1/logs/${id}`), { status: 404, type: 'not_found_error' });
    },
  );
});

describe('x-gateway-tables-version', () => {
  const version = async (): Promise<string> => {
    const ready = await httpClient(gateway.adminUrl).get('/readyz');
    return ready.json<{ tables: { hash: string } }>().tables.hash;
  };

  test.each<[name: string, ask: () => Promise<{ headers: Readonly<Record<string, unknown>> }>]>([
    ['a JSON answer', () => chat(user.client)],
    ['a stream', () => streamed(user.client)],
    ['a refused body', () => chat(user.client, { temperature: 9 })],
    ['a missing key', () => chat(httpClient(gateway.url))],
    ['another method', () => user.client.get(chatPath)],
    ['a path that cannot be decoded', () => user.client.get('/v1/keys/%zz')],
    ['a body that is no JSON', () => user.client.request('POST', chatPath, { body: '{' })],
    ['an exhausted tier', () => chat(user.client, { messages: [{ role: 'user', content: 'fails' }] })],
    [
      "an override's error, which is the vendor's",
      () =>
        chat(
          user.client,
          { messages: [{ role: 'user', content: 'fails' }] },
          { 'x-gateway-override-model': 'openai:gpt-test' },
        ),
    ],
  ])('is on %s', async (_name, ask) => {
    for (const vendor of ['openai', 'sarvam', 'anthropic'] as const)
      gateway.vendors[vendor].when('fails', failure(503, { 'x-gateway-tables-version': 'vendor' }));
    expect((await ask()).headers['x-gateway-tables-version']).toBe(await version());
  });

  test('is that of the row, and of the tables that the request began with', async () => {
    const before = await version();
    const { id, headers } = asked();
    const vendor = gate();
    gateway.vendors.openai.script(heldBy(vendor, answer()));
    const under = user.client.post(chatPath, chatBody(), headers);
    await gateway.vendors.openai.received(0);
    await gateway.writeTables(tables({ timeouts: { attempt_seconds: 99 } }));
    await eventually(async () => ((await version()) === before ? undefined : true));
    vendor.open();
    expect((await under).headers['x-gateway-tables-version']).toBe(before);
    expect((await explained(user.client, id)).tables_version).toBe(before);
    expect((await chat(user.client)).headers['x-gateway-tables-version']).toBe(await version());
  });
});
