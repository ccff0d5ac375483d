/** SPEC 4.5, routing rules: order, fallback, override, residency, capability. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chat, chatBody, chatOk, chatPath, gatewayOf, logRowsOnceThere, streamed } from '../support/chat.ts';
import { expectError } from '../support/expect-error.ts';
import type { FakeVendor } from '../support/fake-vendor.ts';
import { startFakeVendor } from '../support/fake-vendor.ts';
import type { User } from '../support/register.ts';
import { addKey, providerSecret, registerUser, registerWithKeys } from '../support/register.ts';
import type { GatewayUnderTest } from '../support/start-gateway.ts';
import { startGateway } from '../support/start-gateway.ts';
import { tables } from '../support/tables.ts';
import type { VendorName } from '../support/vendor-pack.ts';
import {
  answer,
  closeSilently,
  emptyOk,
  failure,
  firstEventError,
  hang,
  headersThenSilence,
  htmlOk,
  rawBytes,
  redirect,
  reset,
  respond,
  roleThenError,
  tokensThen,
  truncatedJson,
} from '../support/vendor-plans.ts';
import type { Script } from '../support/vendor-reply.ts';
import { gzipped } from '../support/vendor-reply.ts';
import type { Completion } from '../support/wire-types.ts';

let gateway: GatewayUnderTest;
let user: User;
let ownServer: FakeVendor;

const blind = {
  vision: false,
  tools: false,
  json_object: false,
  json_schema: false,
  multiple_choices: false,
};

beforeAll(async () => {
  ownServer = await startFakeVendor();
  const base = tables();
  gateway = await startGateway({
    tables: tables({
      models: [
        ...(base.models ?? []),
        { provider: 'openai', match: 'gpt-test-small', ...blind },
        { provider: 'together', match: 'tog/test', ...blind, tools: true },
        { provider: 'sarvam', match: 'sarvam-test', vision: false },
        { provider: 'anthropic', match: 'claude-test-small', ...blind },
      ],
    }),
  });
  user = await registerWithKeys(gateway.url);
}, 60_000);

afterAll(async () => {
  await gateway?.stop();
  await ownServer?.close();
});

beforeEach(() => {
  gateway.vendors.clear();
  ownServer.clear();
});

const override = (value: string) => ({ 'x-gateway-override-model': value });
const india = { 'x-gateway-residency': 'india' };

describe('the candidates of a tier', () => {
  const orders: [mode: string, order: VendorName[]][] = [
    ['gw/cheap', ['openai', 'together', 'sarvam', 'anthropic']],
    ['gw/balanced', ['openai', 'sarvam', 'anthropic']],
    ['gw/premium', ['anthropic', 'openai', 'sarvam']],
  ];

  test.each(orders)('of %s are tried in the order %j', async (mode, order) => {
    gateway.vendors.always(failure(500));
    const response = await chat(user.client, { model: mode });
    expect(response.status).toBe(502);
    expect(gateway.vendors.calls()).toEqual(order);
  });

  test.each(orders)('of %s stop at the first answer', async (mode, [first]) => {
    const body = await chatOk(user.client, { model: mode });
    expect(body.gateway).toMatchObject({ provider: first, mode, cache_hit: false });
    expect(gateway.vendors.calls()).toEqual([first]);
  });

  test('are skipped, not failed, when the user has no key for them', async () => {
    const owner = await registerWithKeys(gateway.url, ['anthropic']);
    gateway.vendors.anthropic.always(failure(500));
    const error = expectError(await chat(owner.client), { status: 502, type: 'provider_error' });
    expect(gateway.vendors.calls()).toEqual(['anthropic']);
    expect(error.attempts).toHaveLength(1);
  });

  test.each(['gw/cheap', 'gw/balanced', 'gw/premium'])(
    'of %s without any key: 422 no_provider_key',
    async (model) => {
      const owner = await registerUser(gateway.url);
      expectError(await chat(owner.client, { model }), {
        status: 422,
        type: 'invalid_request_error',
        code: 'no_provider_key',
      });
    },
  );

  test('never include a self_hosted endpoint', async () => {
    const owner = await registerUser(gateway.url);
    await addKey(owner, {
      provider: 'self_hosted',
      api_key: 'x',
      base_url: ownServer.url,
      declared_region: 'india',
    });
    expectError(await chat(owner.client), {
      status: 422,
      type: 'invalid_request_error',
      code: 'no_provider_key',
    });
    expectError(await chat(owner.client, {}, india), { status: 422, type: 'residency_error' });
    expect(ownServer.ledger).toEqual([]);
  });
});

describe('an answer', () => {
  test('has the specified shape', async () => {
    const body = await chatOk(user.client);
    expect(body).toMatchObject({
      object: 'chat.completion',
      model: 'gpt-test',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Namaste, world.' }, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    });
    expect(body.id).toBeTypeOf('string');
    expect(Number.isInteger(body.created)).toBe(true);
    expect(Object.keys(body.gateway).sort()).toEqual([
      'cache_hit',
      'cost_usd',
      'latency_ms',
      'mode',
      'model',
      'provider',
      'request_id',
      'residency_actual',
    ]);
    expect(Number.isInteger(body.gateway.latency_ms)).toBe(true);
  });

  test('of anthropic is translated', async () => {
    const body = await chatOk(user.client, { model: 'gw/premium', max_tokens: 9 });
    expect(body).toMatchObject({
      object: 'chat.completion',
      model: 'claude-test-large',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Namaste, world.' }, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
      gateway: { provider: 'anthropic', residency_actual: 'global' },
    });
    const [call] = gateway.vendors.anthropic.ledger;
    expect(call?.path).toBe('/v1/messages');
    expect(call?.headers).toMatchObject({
      'x-api-key': providerSecret(user, 'anthropic'),
      'anthropic-version': '2023-06-01',
    });
    expect(call?.body).toMatchObject({ model: 'claude-test-large', max_tokens: 9 });
  });

  test.each([
    ['openai', '/v1/chat/completions'],
    ['together', '/v1/chat/completions'],
    ['sarvam', '/v2/chat/completions'],
  ] as const)('of %s is asked at %s with the user’s own key', async (provider, path) => {
    await chatOk(user.client, {}, override(`${provider}:some-model`));
    const [call] = gateway.vendors[provider].ledger;
    expect(call?.path).toBe(path);
    expect(call?.headers['authorization']).toBe(`Bearer ${providerSecret(user, provider)}`);
    expect(call?.headers['content-type']).toMatch(/^application\/json/);
  });

  test('is fetched without anything of the client’s own headers', async () => {
    await chatOk(
      user.client,
      {},
      {
        cookie: 'session=1',
        'x-forwarded-for': '203.0.113.9',
        'x-gateway-timeout': '30',
        'x-custom': 'mine',
        'openai-organization': 'org-client',
        'user-agent': 'client/1',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        baggage: 'user=alice',
      },
    );
    const [call] = gateway.vendors.openai.ledger;
    const names = Object.keys(call?.headers ?? {});
    expect(names.filter((name) => name.startsWith('x-gateway') || name.startsWith('x-forwarded'))).toEqual(
      [],
    );
    for (const name of ['cookie', 'x-custom', 'openai-organization', 'traceparent', 'baggage'])
      expect(names).not.toContain(name);
    expect(JSON.stringify(call?.headers)).not.toContain(user.key);
  });

  test('hides the provider’s own headers', async () => {
    gateway.vendors.openai.script((request) => ({
      ...answer()(request),
      headers: {
        'content-type': 'application/json',
        'set-cookie': 'a=b',
        server: 'vendor',
        'openai-organization': 'org-secret',
        'x-request-id': 'vendor-id',
        'proxy-authenticate': 'x',
      },
    }));
    const response = await chat(user.client);
    expect(response.status).toBe(200);
    for (const name of ['set-cookie', 'openai-organization', 'proxy-authenticate'])
      expect(response.headers).not.toHaveProperty(name);
    expect(response.headers['server']).not.toBe('vendor');
    expect(response.headers['x-request-id']).not.toBe('vendor-id');
  });
});

const failures: [name: string, script: Script, headers?: Record<string, string>][] = [
  ...[400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 520, 529].map(
    (status): [string, Script] => [`status ${status}`, failure(status)],
  ),
  ['a redirect', redirect('http://127.0.0.1:9/elsewhere')],
  ['a reset', reset],
  ['a silent close', closeSilently],
  ['an empty 200', emptyOk],
  ['an HTML 200', htmlOk],
  ['a 204', respond(204, '')],
  ['an error object in a 200', respond(200, '{"error":{"message":"no","type":"server_error"}}')],
  ['an unreadable 200', respond(200, '{"hello":"world"}')],
  ['a body cut by FIN', respond(200, '{"id":"x","choi', { 'content-type': 'application/json' }, 'fin')],
  ['a body cut by reset', respond(200, '{"id":"x","choi', { 'content-type': 'application/json' }, 'reset')],
  ['bytes that are no HTTP', rawBytes('SMTP ready\r\n')],
  ['a bad status line', rawBytes('HTTP/1.1 abc OK\r\ncontent-length: 0\r\n\r\n')],
  ['a 101', rawBytes('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n')],
  ['less than its content-length', rawBytes('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}')],
  ['a bad chunk size', rawBytes('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}')],
  ['1 MB of headers', rawBytes(`HTTP/1.1 200 OK\r\nx-big: ${'a'.repeat(1_000_000)}\r\n\r\n{}`)],
  ['silence', hang, { 'x-gateway-timeout': '1' }],
  ['headers, then silence', headersThenSilence, { 'x-gateway-timeout': '1' }],
];

describe('falls back to the next candidate', () => {
  test.each([...failures, ['a truncated body', truncatedJson] as [string, Script]])(
    'when the first one answers with %s',
    async (_name, script, headers = {}) => {
      gateway.vendors.openai.script(script);
      const body = await chatOk(user.client, {}, headers);
      expect(body.gateway).toMatchObject({
        provider: 'sarvam',
        model: 'sarvam-test',
        residency_actual: 'india',
      });
      expect(body.model).toBe('sarvam-test');
      expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam']);
    },
  );

  test.each<[string, Script, Record<string, string>?]>([
    ...failures,
    ['an error as the first event', firstEventError],
    ['a role and then an error', roleThenError],
    ['a role and then a clean end', tokensThen(0, 'clean-end')],
    ['a role and then a FIN', tokensThen(0, 'fin')],
    ['a role and then a reset', tokensThen(0, 'reset')],
    ['a role and then silence', tokensThen(0, 'hang'), { 'x-gateway-timeout': '1' }],
    ['only [DONE]', respond(200, 'data: [DONE]\n\n', { 'content-type': 'text/event-stream' })],
  ])('of a stream when the first one answers with %s', async (_name, script, headers = {}) => {
    gateway.vendors.openai.script(script);
    const stream = await streamed(user.client, {}, headers);
    expect(stream.content).toBe('Namaste, world.');
    expect(stream.done).toBe(true);
    expect(gatewayOf(stream)).toMatchObject({ provider: 'sarvam', residency_actual: 'india' });
    expect(stream.chunks.every((chunk) => chunk.model === 'sarvam-test')).toBe(true);
    expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam']);
  });

  test('twice when need be', async () => {
    gateway.vendors.openai.script(failure(429));
    gateway.vendors.sarvam.script(reset);
    expect((await chatOk(user.client)).gateway.provider).toBe('anthropic');
    expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam', 'anthropic']);
  });

  test('without trying the same candidate twice', async () => {
    gateway.vendors.always(reset);
    expect((await chat(user.client)).status).toBe(502);
    expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam', 'anthropic']);
  });

  test('with a redirect’s target never called', async () => {
    gateway.vendors.openai.script(redirect(`${gateway.vendors.together.url}/v1/chat/completions`));
    await chatOk(user.client);
    expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam']);
  });
});

describe('an override', () => {
  test.each([400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529])(
    'passes the vendor’s %d on verbatim, without fallback',
    async (status) => {
      const text = `{"error":{"message":"vendor words","odd":[${status}]},  "spacing":true}`;
      gateway.vendors.openai.script(
        respond(status, text, {
          'content-type': 'application/json; charset=utf-8',
          'retry-after': '7',
          'set-cookie': 'a=b',
          'openai-organization': 'org-x',
          'x-request-id': 'vendor',
        }),
      );
      const response = await chat(
        user.client,
        {},
        { ...override('openai:gpt-test'), 'x-request-id': 'ours' },
      );
      expect(response.status).toBe(status);
      expect(response.text).toBe(text);
      expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
      expect(response.headers['retry-after']).toBe('7');
      expect(response.headers['x-request-id']).toBe('ours');
      expect(response.headers).not.toHaveProperty('set-cookie');
      expect(response.headers).not.toHaveProperty('openai-organization');
      expect(gateway.vendors.calls()).toEqual(['openai']);
    },
  );

  test('passes an error of anthropic on in anthropic’s own form', async () => {
    gateway.vendors.anthropic.script(failure(529));
    const response = await chat(user.client, {}, override('anthropic:claude-test'));
    expect(response.status).toBe(529);
    expect(response.json<object>()).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } });
  });

  test('passes an error before a stream on with its status', async () => {
    gateway.vendors.openai.script(failure(429, { 'retry-after': '3' }));
    const response = await chat(user.client, { stream: true }, override('openai:gpt-test'));
    expect(response.status).toBe(429);
    expect(response.headers['retry-after']).toBe('3');
    expect(response.json<{ error: { code: string } }>().error.code).toBe('rate_limit_exceeded');
  });

  test('passes plain text on as plain text', async () => {
    gateway.vendors.openai.script(respond(503, 'upstream busy', { 'content-type': 'text/plain' }));
    const response = await chat(user.client, {}, override('openai:gpt-test'));
    expect(response.status).toBe(503);
    expect(response.text).toBe('upstream busy');
    expect(response.headers['content-type']).toMatch(/^text\/plain/);
  });

  test('never passes more than 64 KiB on', async () => {
    gateway.vendors.openai.script(respond(500, `{"error":"${'x'.repeat(300_000)}"}`));
    const response = await chat(user.client, {}, override('openai:gpt-test'));
    expect(response.status).toBe(500);
    expect(response.text.length).toBeLessThanOrEqual(64 * 1024);
  });

  test.each<[string, Script, Record<string, string>?]>([
    ['a reset', reset],
    ['a silent close', closeSilently],
    ['silence', hang, { 'x-gateway-timeout': '1' }],
  ])('answers 502 when there is no answer to pass on: %s', async (_name, script, headers = {}) => {
    gateway.vendors.openai.script(script);
    const response = await chat(user.client, {}, { ...override('openai:gpt-test'), ...headers });
    expectError(response, { status: 502, type: 'provider_error' });
    expect(gateway.vendors.calls()).toEqual(['openai']);
  });
});

describe('a self_hosted endpoint', () => {
  const box = (additions: Record<string, unknown> = {}) => ({
    provider: 'self_hosted',
    api_key: 'box-secret',
    base_url: ownServer.url,
    declared_region: 'us-east-1',
    ...additions,
  });

  test.each([
    ['without a path', '', '/v1/chat/completions'],
    ['with a slash', '/', '/v1/chat/completions'],
    ['with /v1', '/v1', '/v1/chat/completions'],
    ['with /v1/', '/v1/', '/v1/chat/completions'],
    ['with a path of its own', '/openai/v1', '/openai/v1/chat/completions'],
  ])('is reached by the override header, its address %s', async (_name, suffix, path) => {
    const owner = await registerUser(gateway.url);
    await addKey(owner, box({ base_url: ownServer.url + suffix }));
    const body = await chatOk(owner.client, {}, override('self_hosted:llama:8b'));
    expect(body.gateway).toMatchObject({
      provider: 'self_hosted',
      model: 'llama:8b',
      mode: 'override',
      cost_usd: '0.000000',
      residency_actual: 'global',
    });
    expect(ownServer.ledger[0]?.path).toBe(path);
    expect(ownServer.ledger[0]?.headers['authorization']).toBe('Bearer box-secret');
  });

  test('is chosen newest first, or by its label or id', async () => {
    const other = await startFakeVendor();
    try {
      const owner = await registerUser(gateway.url);
      const first = await addKey(owner, box({ label: 'first' }));
      await addKey(owner, box({ label: 'second', base_url: other.url }));
      const servedBy = async (value: string) => {
        const before = [ownServer.ledger.length, other.ledger.length];
        await chatOk(owner.client, {}, override(value));
        return ownServer.ledger.length > (before[0] ?? 0) ? 'first' : 'second';
      };
      expect(await servedBy('self_hosted:m')).toBe('second');
      expect(await servedBy('self_hosted/first:m')).toBe('first');
      expect(await servedBy('self_hosted/second:m')).toBe('second');
      expect(await servedBy(`self_hosted/${first.id}:m`)).toBe('first');
      expect(ownServer.ledger.at(-1)?.body['model']).toBe('m');
    } finally {
      await other.close();
    }
  });

  test('of another user is out of reach', async () => {
    const [owner, thief] = [await registerUser(gateway.url), await registerUser(gateway.url)];
    const { id } = await addKey(owner, box());
    const response = await chat(thief.client, {}, override(`self_hosted/${id}:m`));
    expect(response.status).toBe(422);
    expect(ownServer.ledger).toEqual([]);
  });

  test('in India serves India requests, elsewhere not', async () => {
    const owner = await registerUser(gateway.url);
    await addKey(owner, box());
    const refused = await chat(owner.client, {}, { ...override('self_hosted:m'), ...india });
    expectError(refused, { status: 422, type: 'residency_error' });
    expect(ownServer.ledger).toEqual([]);
    await addKey(owner, box({ declared_region: 'Ap-South-1' }));
    const body = await chatOk(owner.client, {}, { ...override('self_hosted:m'), ...india });
    expect(body.gateway.residency_actual).toBe('india');
  });

  test('that refuses stream_options is asked once more without, and that is remembered', async () => {
    const owner = await registerUser(gateway.url);
    await addKey(owner, box());
    const refusal = respond(
      400,
      '{"error":{"message":"Unknown field: stream_options","param":"stream_options"}}',
    );
    ownServer.always((request) =>
      (request.body['stream_options'] === undefined ? answer() : refusal)(request),
    );
    const first = await streamed(owner.client, {}, override('self_hosted:m'));
    expect(first.done).toBe(true);
    expect(ownServer.ledger).toHaveLength(2);
    await streamed(owner.client, {}, override('self_hosted:m'));
    expect(ownServer.ledger).toHaveLength(3);
  });
});

describe('India residency', () => {
  test.each(['gw/cheap', 'gw/balanced', 'gw/premium'])('routes %s to India only', async (model) => {
    const body = await chatOk(user.client, { model }, india);
    expect(body.gateway).toMatchObject({ provider: 'sarvam', residency_actual: 'india' });
    expect(gateway.vendors.calls()).toEqual(['sarvam']);
  });

  test('does not fall back out of India', async () => {
    gateway.vendors.sarvam.always(failure(500));
    expectError(await chat(user.client, {}, india), { status: 502, type: 'provider_error' });
    expect(gateway.vendors.calls()).toEqual(['sarvam']);
  });

  test('without an Indian key is 422 residency_error', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai', 'anthropic', 'together']);
    expectError(await chat(owner.client, {}, india), { status: 422, type: 'residency_error' });
    expect(gateway.vendors.ledger()).toEqual([]);
  });

  test.each(['openai:gpt-test', 'anthropic:claude-test', 'together:tog/test'])(
    'refuses the override %s before a byte leaves',
    async (value) => {
      expectError(await chat(user.client, {}, { ...override(value), ...india }), {
        status: 422,
        type: 'residency_error',
      });
      expect(gateway.vendors.ledger()).toEqual([]);
    },
  );

  test('allows the override to sarvam', async () => {
    const body = await chatOk(user.client, {}, { ...override('sarvam:sarvam-test'), ...india });
    expect(body.gateway).toMatchObject({ mode: 'override', residency_actual: 'india' });
  });
});

describe('capability', () => {
  const image = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
      ],
    },
  ];
  const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };

  test('skips what cannot see when an image is sent', async () => {
    gateway.vendors.openai.script(failure(500));
    const body = await chatOk(user.client, { messages: image });
    expect(body.gateway.provider).toBe('anthropic');
    expect(gateway.vendors.calls()).toEqual(['openai', 'anthropic']);
  });

  test('prefers the candidate that has tools', async () => {
    const body = await chatOk(user.client, { model: 'gw/cheap', tools: [tool] });
    expect(body.gateway.provider).toBe('together');
  });

  test.each([
    ['vision', { messages: image }, /vision|image/i],
    ['n', { n: 2 }, /\bn\b|choices/i],
    ['tools', { tools: [tool] }, /tool/i],
    ['json', { response_format: { type: 'json_object' } }, /json|response_format/i],
  ])('answers 422 naming the feature when no candidate has it: %s', async (_name, additions, pattern) => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    const error = expectError(await chat(owner.client, { model: 'gw/cheap', ...additions }), {
      status: 422,
      type: 'invalid_request_error',
    });
    expect(error.message).toMatch(pattern);
    expect(gateway.vendors.ledger()).toEqual([]);
  });
});

describe('a kept-alive connection', () => {
  const warm = async () => {
    await chatOk(user.client);
    gateway.vendors.clear();
  };

  test('that the vendor ended in the meantime costs nobody a failure', async () => {
    for (let round = 0; round < 20; round += 1) {
      await warm();
      gateway.vendors.openai.endSockets();
      expect((await chatOk(user.client)).gateway.provider).toBe('openai');
      expect(gateway.vendors.calls()).toEqual(['openai']);
    }
  });

  test.each<[string, Script]>([
    ['a reset', reset],
    ['half a status line', rawBytes('HTTP/1.1 20')],
    ['half a head', rawBytes('HTTP/1.1 200 OK\r\ncontent-type: appl')],
    ['an answer cut in the middle', rawBytes('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{')],
  ])(
    'whose vendor answers the request with %s is not asked twice: it may have been billed',
    async (_name, script) => {
      for (let round = 0; round < 5; round += 1) {
        await warm();
        gateway.vendors.openai.script(script);
        expect((await chatOk(user.client)).gateway.provider).toBe('sarvam');
        expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam']);
      }
    },
  );
});

describe('a client that leaves', () => {
  test('ends the upstream call, stops the fallback and has one row', async () => {
    const owner = await registerWithKeys(gateway.url);
    gateway.vendors.always(hang);
    const controller = new AbortController();
    const leaving = owner.client.request('POST', chatPath, { body: chatBody(), signal: controller.signal });
    const call = await gateway.vendors.openai.received(0);
    const left = performance.now();
    controller.abort();
    await expect(leaving).rejects.toThrow();
    expect(await call.closedEarly).toBe(true);
    expect((call.peerClosedAtMs ?? Number.POSITIVE_INFINITY) - left).toBeLessThan(300);
    const rows = await logRowsOnceThere(owner.client, 1);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ status: 'client_closed', cost_usd: '0.000000' });
    expect(gateway.vendors.calls()).toEqual(['openai']);
  });
});

describe('a vendor’s compressed answer', () => {
  test('that was not asked for is read or passed over, never shown as rubbish', async () => {
    gateway.vendors.openai.script(gzipped(answer()));
    const body = await chatOk(user.client);
    expect(body.choices[0]?.message['content']).toBe('Namaste, world.');
    expect(gateway.vendors.openai.ledger[0]?.headers['accept-encoding'] ?? 'identity').toBe('identity');
  });
});

describe('two users at once', () => {
  test('never have their keys, answers or ids mixed', async () => {
    const users = await Promise.all([1, 2, 3, 4].map(() => registerWithKeys(gateway.url, ['openai'])));
    gateway.vendors.openai.always((request) =>
      answer({ text: [`${request.headers['authorization']} ${JSON.stringify(request.body['messages'])}`] })(
        request,
      ),
    );
    await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const owner = users[index % users.length] as User;
        const messages = [{ role: 'user', content: `q${index}` }];
        const response = await owner.client.post(chatPath, chatBody({ messages }), {
          'x-request-id': `r${index}`,
        });
        const body = response.json<Completion>();
        expect(body.choices[0]?.message['content']).toBe(
          `Bearer ${providerSecret(owner, 'openai')} ${JSON.stringify(messages)}`,
        );
        expect(body.gateway.request_id).toBe(`r${index}`);
      }),
    );
  });
});
