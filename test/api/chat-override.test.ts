/** SPEC 4.5, routing rule 2, and 4.2: the override header, and the self_hosted endpoints that it reaches. */
import { describe, expect, test } from 'vitest';
import { chat, chatOk, gatewayOf, streamed } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import { addKey, registerUser } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { startFakeVendor } from '../harness/vendors/fake-vendor.ts';
import { defaultText, openAiAnswer } from '../harness/vendors/openai-wire.ts';
import { answer, closeSilently, failure, hang, reset, respond } from '../harness/vendors/vendor-plans.ts';
import type { Script } from '../harness/vendors/vendor-reply.ts';

const ownServer = useServer(startFakeVendor);
const gateway = useGateway();
const user = useUser(gateway);

const override = (value: string) => ({ 'x-gateway-override-model': value });
const india = { 'x-gateway-residency': 'india' };

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

  test('passes an error on without the key that its vendor quotes', async () => {
    let sent = '';
    gateway.vendors.openai.script((request) => {
      sent = String(request.headers['authorization']).replace('Bearer ', '');
      return respond(401, `{"error":{"message":"Incorrect API key provided: ${sent}."}}`)(request);
    });
    const response = await chat(user.client, {}, override('openai:gpt-test'));
    expect(sent.length).toBeGreaterThan(4);
    expect(response.text).toBe('{"error":{"message":"Incorrect API key provided: [redacted]."}}');
  });

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

  test.each(['<html><script>alert(1)</script></html>', '{"error":{"message":"odd"}}'])(
    'says to browsers that what a vendor wrote is of the type it says, and nothing else: %s',
    async (text) => {
      gateway.vendors.openai.script(respond(500, text, { 'content-type': 'text/html' }));
      const response = await chat(user.client, {}, override('openai:gpt-test'));
      expect([response.status, response.text]).toEqual([500, text]);
      expect(response.headers['x-content-type-options']).toBe('nosniff');
    },
  );

  test('never passes more than 64 KiB on', async () => {
    gateway.vendors.openai.script(respond(500, `{"error":"${'x'.repeat(300_000)}"}`));
    const response = await chat(user.client, {}, override('openai:gpt-test'));
    expect(response.status).toBe(500);
    expect(response.text.length).toBeLessThanOrEqual(64 * 1024);
    expect(response.headers['content-type'], 'what was cut is no JSON').toMatch(/^text\/plain/);
  });

  test.each([false, true])('names the error a vendor hides in a 200 (stream: %s)', async (stream) => {
    const error = { message: 'Model is warming up.', type: 'server_error', code: 'warming_up' };
    gateway.vendors.openai.script(respond(200, JSON.stringify({ error })));
    const response = await chat(user.client, { stream }, override('openai:gpt-test'));
    expectError(response, { status: 502, type: 'provider_error', code: 'warming_up' });
    expect(response.json<{ error: { message: string } }>().error.message).toBe(error.message);
    expect(gateway.vendors.calls()).toEqual(['openai']);
  });

  test('streams what the vendor answers to a stream request as JSON', async () => {
    gateway.vendors.openai.script(respond(200, JSON.stringify(openAiAnswer('gpt-test'))));
    const stream = await streamed(user.client, {}, override('openai:gpt-test'));
    expect(stream.done).toBe(true);
    expect(stream.content).toBe(defaultText.join(''));
    expect(gatewayOf(stream)).toMatchObject({ provider: 'openai', mode: 'override' });
    expect(gateway.vendors.calls()).toEqual(['openai']);
  });

  // What frameworks of users' own servers say to any POST.
  const created: Script = (request) => ({ ...answer()(request), status: 201 });

  test('takes an answer with 201 for an answer', async () => {
    gateway.vendors.openai.script(created);
    const { choices, gateway: block } = await chatOk(user.client, {}, override('openai:gpt-test'));
    expect(choices[0]?.message['content']).toBe(defaultText.join(''));
    expect(block).toMatchObject({ provider: 'openai', mode: 'override' });
    gateway.vendors.openai.script(created);
    const stream = await streamed(user.client, {}, override('openai:gpt-test'));
    expect([stream.content, stream.done]).toEqual([defaultText.join(''), true]);
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

  test.each([
    ['', undefined],
    ['… é ü 漢', 'Bearer %E2%80%A6 %C3%A9 %C3%BC %E6%BC%A2'],
  ])('is reached with %j for a key', async (placeholder, sent) => {
    const owner = await registerUser(gateway.url);
    await addKey(owner, box({ api_key: placeholder }));
    await chatOk(owner.client, {}, override('self_hosted:m'));
    expect(ownServer.ledger[0]?.headers['authorization']).toBe(sent);
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
