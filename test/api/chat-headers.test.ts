/** SPEC 4.5: request headers and their rules. */
import { describe, expect, test } from 'vitest';
import { chat, chatBody, chatOk, chatPath, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import { httpClient, sendRaw } from '../harness/gateway/http-client.ts';
import { registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import { hang } from '../harness/vendors/vendor-plans.ts';
import { uuidPattern } from '../harness/vendors/wire-types.ts';

const gateway = useGateway();
const user = useUser(gateway);

describe('X-Gateway-Cache-TTL', () => {
  test.each([
    '60',
    '3600',
    '86400',
    '1',
    '0',
    '-1',
    '86401',
    '999999',
    '9'.repeat(400),
    '-999999999999999999999',
  ])('takes any integer: %s', async (ttl) => {
    await chatOk(user.client, {}, { 'x-gateway-cache': 'true', 'x-gateway-cache-ttl': ttl });
  });

  test.each(['abc', '', '1e3', '0x10', '1.5', '60, 3600', '60s', '+60', '--60', 'Infinity', 'NaN', '6 0'])(
    'refuses %j with 422, whether or not caching is asked for',
    async (ttl) => {
      for (const headers of [{ 'x-gateway-cache': 'true' }, {}])
        expectInvalid(await chat(user.client, {}, { ...headers, 'x-gateway-cache-ttl': ttl }), /ttl/i);
      expect(gateway.vendors.ledger()).toEqual([]);
    },
  );

  test('refuses two of them', async () => {
    const body = JSON.stringify(chatBody());
    const { statuses } = await sendRaw(gateway.url, {
      parts: [
        `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\n` +
          `x-gateway-cache-ttl: 60\r\nx-gateway-cache-ttl: 70\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      ],
    });
    expect(statuses).toEqual([422]);
  });
});

describe('X-Gateway-Timeout', () => {
  test.each(['1', '300', '0', '-5', '301', '9'.repeat(400)])('takes any integer: %s', async (timeout) => {
    await chatOk(user.client, {}, { 'x-gateway-timeout': timeout });
  });

  test.each(['abc', '', '1.5', '1e2', '10s', '0x10', '5, 6', '+5'])(
    'refuses %j with 422',
    async (timeout) => {
      expectInvalid(await chat(user.client, {}, { 'x-gateway-timeout': timeout }), /timeout/i);
    },
  );

  test('limits each attempt: 1 second at a silent provider, then the next one answers', async () => {
    gateway.vendors.openai.script(hang);
    const started = performance.now();
    const body = await chatOk(user.client, {}, { 'x-gateway-timeout': '1' });
    const elapsed = performance.now() - started;
    expect(body.gateway.provider).toBe('sarvam');
    expect(elapsed).toBeGreaterThan(900);
    expectInTime(elapsed - 1_000, 500);
  });

  test('is raised to 1 second when it asks for less', async () => {
    gateway.vendors.openai.script(hang);
    const started = performance.now();
    const body = await chatOk(user.client, {}, { 'x-gateway-timeout': '-3' });
    expect(body.gateway.provider).toBe('sarvam');
    expect(performance.now() - started).toBeGreaterThan(900);
  });
});

describe('X-Gateway-Residency', () => {
  test.each(['india', 'India', 'INDIA'])('takes %s', async (residency) => {
    const body = await chatOk(user.client, {}, { 'x-gateway-residency': residency });
    expect(body.gateway).toMatchObject({ provider: 'sarvam', residency_actual: 'india' });
  });

  test.each(['global', 'eu', 'indiana', 'india,india', ''])('refuses %j with 422', async (residency) => {
    expectInvalid(await chat(user.client, {}, { 'x-gateway-residency': residency }), /residency/i);
    expect(gateway.vendors.ledger()).toEqual([]);
  });
});

describe('X-Gateway-Cache', () => {
  test.each(['true', 'True', 'TRUE'])('opts in with %s', async (value) => {
    const messages = [{ role: 'user', content: `opt in ${value}` }];
    await chatOk(user.client, { messages }, { 'x-gateway-cache': value });
    const second = await chatOk(user.client, { messages }, { 'x-gateway-cache': value });
    expect(second.gateway.cache_hit).toBe(true);
  });

  test.each(['false', '1', 'yes', '', 'tru'])('does not opt in with %j', async (value) => {
    const messages = [{ role: 'user', content: `opt out ${value}` }];
    await chatOk(user.client, { messages }, { 'x-gateway-cache': value });
    const second = await chatOk(user.client, { messages }, { 'x-gateway-cache': value });
    expect(second.gateway.cache_hit).toBe(false);
  });
});

describe('X-Gateway-Override-Model', () => {
  test.each([
    ['openai:gpt-test', 'openai', 'gpt-test'],
    ['anthropic:claude-test', 'anthropic', 'claude-test'],
    ['together:tog/test', 'together', 'tog/test'],
    ['sarvam:sarvam-test', 'sarvam', 'sarvam-test'],
    ['openai:never-heard-of', 'openai', 'never-heard-of'],
    ['openai:ft:gpt:org:x', 'openai', 'ft:gpt:org:x'],
    ['together:a/../../b?c=d%00#e', 'together', 'a/../../b?c=d%00#e'],
  ] as const)('sends %s to %s as model %s', async (value, provider, model) => {
    const body = await chatOk(user.client, {}, { 'x-gateway-override-model': value });
    expect(body.gateway).toMatchObject({ provider, model, mode: 'override' });
    expect(gateway.vendors.calls()).toEqual([provider]);
    const [call] = gateway.vendors[provider].ledger;
    expect(call?.body['model']).toBe(model);
    expect(call?.path).toMatch(/^\/v[12]\/(chat\/completions|messages)$/);
  });

  test.each([
    'openai',
    'openai:',
    ':gpt-test',
    ':',
    '',
    'gpt-test',
    'OPENAI:gpt-test',
    'nobody:small',
    'constructor:x',
    'openai gpt-test',
    'openai/gpt-test',
    `openai:${'m'.repeat(10_000)}`,
  ])('refuses %j with 422', async (value) => {
    expectInvalid(await chat(user.client, {}, { 'x-gateway-override-model': value }), /override/i);
    expect(gateway.vendors.ledger()).toEqual([]);
  });

  test('still wants a mode in the body', async () => {
    const headers = { 'x-gateway-override-model': 'openai:gpt-test' };
    expectInvalid(await chat(user.client, { model: 'gpt-test' }, headers), 'model');
  });

  test('to a provider without a key is refused with no_provider_key', async () => {
    const poor = await registerWithKeys(gateway.url, ['openai']);
    const response = await chat(poor.client, {}, { 'x-gateway-override-model': 'sarvam:sarvam-test' });
    expectError(response, { status: 422, type: 'invalid_request_error', code: 'no_provider_key' });
  });
});

describe('X-Request-ID', () => {
  test.each(['a', 'abc-DEF_123', 'x'.repeat(128)])('is echoed when it is well-formed: %s', async (id) => {
    const response = await chat(user.client, {}, { 'x-request-id': id });
    expect(response.headers['x-request-id']).toBe(id);
    expect(response.json<{ gateway: { request_id: string } }>().gateway.request_id).toBe(id);
  });

  test.each(['', 'x'.repeat(129), 'has space', 'a.b', 'a/b', 'ü', 'a,b', '<script>', 'a:b'])(
    'is silently replaced by a fresh UUID when it is %j',
    async (id) => {
      const response = await chat(user.client, {}, { 'x-request-id': id });
      expect(response.status).toBe(200);
      expect(response.headers['x-request-id']).toMatch(uuidPattern);
      expect(response.json<{ gateway: { request_id: string } }>().gateway.request_id).toBe(
        response.headers['x-request-id'],
      );
    },
  );

  test('is a fresh UUID when none was sent, and another one each time', async () => {
    const [first, second] = [await chat(user.client), await chat(user.client)];
    expect(first.headers['x-request-id']).toMatch(uuidPattern);
    expect(second.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
  });

  test('given on two header lines is replaced, never joined', async () => {
    const body = JSON.stringify(chatBody());
    const { text, statuses } = await sendRaw(gateway.url, {
      parts: [
        `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\n` +
          `x-request-id: one\r\nx-request-id: two\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      ],
    });
    expect(statuses).toEqual([200]);
    expect(/x-request-id: (.*)\r\n/i.exec(text)?.[1]).toMatch(uuidPattern);
  });

  test('given twice by a client yields two log rows', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    for (let index = 0; index < 2; index += 1) await chatOk(owner.client, {}, { 'x-request-id': 'again' });
    expect(await logRowsOnceThere(owner.client, 2)).toHaveLength(2);
  });

  test.each([
    ['GET', '/v1/keys'],
    ['GET', '/v1/logs'],
    ['GET', '/v1/models'],
    ['GET', '/v1/nothing-here'],
  ])('is echoed on %s %s too', async (method, path) => {
    const response = await user.client.request(method, path, { headers: { 'x-request-id': 'mine-1' } });
    expect(response.headers['x-request-id']).toBe('mine-1');
  });
});

describe('the order of checks', () => {
  const badHeaders = {
    'x-gateway-cache-ttl': 'abc',
    'x-gateway-residency': 'mars',
  };

  test('is authentication before the body', async () => {
    const response = await httpClient(gateway.url).post(chatPath, '{', badHeaders);
    expectError(response, { status: 401, type: 'authentication_error' });
  });

  test('is the body before the headers', async () => {
    expectInvalid(await chat(user.client, { temperature: 9 }, badHeaders), 'temperature');
  });

  test('is the headers before residency and keys', async () => {
    const poor = await registerUser(gateway.url);
    const headers = { 'x-gateway-cache-ttl': 'abc', 'x-gateway-residency': 'india' };
    expectInvalid(await chat(poor.client, {}, headers), /ttl/i);
  });

  test('is residency before keys', async () => {
    const poor = await registerUser(gateway.url);
    const response = await chat(poor.client, {}, { 'x-gateway-residency': 'india' });
    expectError(response, { status: 422, type: 'residency_error' });
  });
});
