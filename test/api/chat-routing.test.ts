/** SPEC 4.5, routing rules 1 and 3: order, residency, capability, and what a vendor is sent. */
import { describe, expect, test } from 'vitest';
import { chat, chatBody, chatOk, chatPath, gatewayFields } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import type { User } from '../harness/gateway/register.ts';
import { addKey, providerSecret, registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { startFakeVendor } from '../harness/vendors/fake-vendor.ts';
import type { VendorName } from '../harness/vendors/vendor-pack.ts';
import { answer, failure } from '../harness/vendors/vendor-plans.ts';
import type { Completion } from '../harness/vendors/wire-types.ts';

const ownServer = useServer(startFakeVendor);

const blind = {
  vision: false,
  tools: false,
  json_object: false,
  json_schema: false,
  multiple_choices: false,
};

const gateway = useGateway({
  tables: tables({
    models: [
      ...(tables().models ?? []),
      { provider: 'openai', match: 'gpt-test-small', ...blind },
      { provider: 'together', match: 'tog/test', ...blind, tools: true },
      { provider: 'sarvam', match: 'sarvam-test', vision: false },
      { provider: 'anthropic', match: 'claude-test-small', ...blind },
    ],
  }),
});
const user = useUser(gateway);

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
    expect(Object.keys(body.gateway).sort()).toEqual(gatewayFields);
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
