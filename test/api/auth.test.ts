/** SPEC 5: who may call what. */
import { describe, expect, test } from 'vitest';
import { chatBody, chatPath } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import { httpClient, sendRaw } from '../harness/gateway/http-client.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';

const gateway = useGateway();
const user = useUser(gateway);

const unauthorized = { status: 401, type: 'authentication_error' };
const anonymous = () => httpClient(gateway.url);

describe('the Authorization header', () => {
  test.each<[string, (key: string) => string | undefined]>([
    ['missing', () => undefined],
    ['empty', () => ''],
    ['a bare key', (key) => key],
    ['Bearer alone', () => 'Bearer'],
    ['Bearer and a space', () => 'Bearer '],
    ['Basic', (key) => `Basic ${Buffer.from(`${key}:`).toString('base64')}`],
    ['another scheme', (key) => `Token ${key}`],
    ['two keys', (key) => `Bearer ${key} ${key}`],
    ['two schemes', (key) => `Bearer Bearer ${key}`],
    ['a comma list', (key) => `Bearer ${key}, Bearer ${key}`],
    ['a key in quotes', (key) => `Bearer "${key}"`],
    ['a key in lower case', (key) => `Bearer ${key.toLowerCase()}`],
    ['a key that lacks its last character', (key) => `Bearer ${key.slice(0, -1)}`],
    ['a key with one more character', (key) => `Bearer ${key}a`],
    ['a key with its first 20 characters only', (key) => `Bearer ${key.slice(0, 20)}`],
    [
      'a key with one character changed',
      (key) => `Bearer ${key.slice(0, 10)}${key[10] === 'a' ? 'b' : 'a'}${key.slice(11)}`,
    ],
    ['an unknown key of the right form', (key) => `Bearer gw_${'A'.repeat(key.length - 3)}`],
    ['10 KB', () => `Bearer gw_${'A'.repeat(10_000)}`],
    ['SQL', () => "Bearer ' OR '1'='1"],
    ['a wildcard', () => 'Bearer %'],
    ['an encoded key', (key) => `Bearer ${encodeURIComponent(`${key} `)}`],
    ['a provider key', (_key) => `Bearer sk-openai-${user.id}`],
  ])('is refused when it is %s, before the body is looked at', async (_name, write) => {
    const value = write(user.key);
    const headers = value === undefined ? {} : { authorization: value };
    for (const body of [chatBody(), '{not json']) {
      const response = await anonymous().post(chatPath, body, headers);
      expectError(response, unauthorized);
      expect(response.headers['www-authenticate']).toMatch(/^Bearer/);
    }
  });

  test.each(['Bearer', 'bearer', 'BEARER'])('takes the scheme as %s', async (scheme) => {
    const response = await anonymous().get('/v1/keys', { authorization: `${scheme} ${user.key}` });
    expect(response.status).toBe(200);
  });

  test.each([1, 2, 5])('takes %i spaces behind the scheme (RFC 7235 2.1)', async (count) => {
    const authorization = `Bearer${' '.repeat(count)}${user.key}`;
    const response = await anonymous().get('/v1/keys', { authorization });
    expect(response.status).toBe(200);
  });

  test('is the only place: not the query, not the body, not another header', async () => {
    expectError(await anonymous().get(`/v1/keys?api_key=${user.key}&access_token=${user.key}`), unauthorized);
    expectError(await anonymous().post(chatPath, chatBody({ api_key: user.key })), unauthorized);
    expectError(
      await anonymous().get('/v1/keys', { 'x-api-key': user.key, cookie: `key=${user.key}` }),
      unauthorized,
    );
  });

  test.each<[string, (key: string) => readonly string[], number]>([
    ['the wrong one first', (key) => ['Bearer wrong', `Bearer ${key}`], 401],
    ['the right one first', (key) => [`Bearer ${key}`, 'Bearer wrong'], 401],
    ['the right one first and last', (key) => [`Bearer ${key}`, 'Bearer wrong', `Bearer ${key}`], 401],
    ['another scheme behind it', (key) => [`Bearer ${key}`, 'Basic eDp5'], 401],
    ['nothing behind it', (key) => [`Bearer ${key}`, ''], 401],
    ['the same value', (key) => [`Bearer ${key}`, `Bearer ${key}`], 200],
  ])('given twice, %s, is never merged and never half ignored', async (_name, write, status) => {
    const lines = write(user.key).map(
      (value, index) => `${index === 0 ? 'a' : 'A'}uthorization: ${value}\r\n`,
    );
    const { statuses } = await sendRaw(gateway.url, {
      parts: [`GET /v1/keys HTTP/1.1\r\nhost: x\r\n${lines.join('')}connection: close\r\n\r\n`],
    });
    expect(statuses[0]).toBe(status);
  });
});

describe('every route', () => {
  const routes: [method: string, path: string][] = [
    ['GET', '/v1/keys'],
    ['POST', '/v1/keys'],
    ['DELETE', '/v1/keys/00000000-0000-0000-0000-000000000000'],
    ['POST', '/v1/chat/completions'],
    ['GET', '/v1/logs'],
    ['GET', '/v1/stats'],
    ['GET', '/v1/models'],
    ['GET', '/v1/models/gw%2Fbalanced'],
    ['GET', '/openapi.json'],
    ['HEAD', '/v1/keys'],
    ['HEAD', '/v1/logs'],
    ['HEAD', '/v1/models'],
    ['HEAD', '/openapi.json'],
  ];

  test.each(routes)('needs a service key: %s %s', async (method, path) => {
    const response = await anonymous().request(method, path, method === 'POST' ? { body: {} } : {});
    expect(response.status).toBe(401);
    if (method !== 'HEAD') expectError(response, unauthorized);
    expect(response.headers['x-request-id']).toBeTypeOf('string');
  });

  const variants = [
    '/v1/keys/',
    '/v1//keys',
    '//v1/keys',
    '/V1/KEYS',
    '/v1/keys%2f',
    '/v1/%6beys',
    '/v1/./keys',
    '/v1/users/../keys',
    '/v1/users/..%2fkeys',
    '/v1/users/%2e%2e/keys',
    '/v1/keys;x=1',
    '/v1/keys?/v1/users',
    '/v1/keys#/v1/users',
    '/v1/users/../chat/completions',
    '/v1/logs/',
    '/metrics',
    '/healthz/../v1/keys',
  ];

  test.each(variants)('is not opened by an odd spelling of its path: %s', async (path) => {
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS']) {
      const { statuses, text } = await sendRaw(gateway.url, {
        parts: [`${method} ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`],
      });
      expect(statuses[0], `${method} ${path}: ${text}`).toBeGreaterThanOrEqual(400);
      expect(statuses[0]).toBeLessThan(500);
    }
  });

  test.each(['a/?', 'a#', 'localhost/v1/users', 'x@y', '127.0.0.1:9'])(
    'is not opened by the Host %s',
    async (host) => {
      const { statuses } = await sendRaw(gateway.url, {
        parts: [`GET /v1/keys HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`],
      });
      expect([400, 401]).toContain(statuses[0]);
    },
  );

  test('says no-store on what only its caller may read', async () => {
    for (const path of ['/v1/keys', '/v1/logs', '/v1/models', '/v1/stats'])
      expect((await user.client.get(path)).headers['cache-control'], path).toMatch(/no-store/);
    const answer = await user.client.post(chatPath, chatBody());
    expect(answer.headers['cache-control']).toMatch(/no-store/);
  });
});

describe('the secrets', () => {
  test('stand in no log line', async () => {
    await anonymous().get('/v1/keys', { authorization: 'Bearer gw_canary_in_header' });
    await anonymous().get('/v1/keys?api_key=gw_canary_in_query');
    await user.client.post(chatPath, chatBody());
    const output = gateway.output();
    for (const secret of [user.key, 'gw_canary_in_header', 'gw_canary_in_query', `sk-openai-${user.id}`])
      expect(output).not.toContain(secret);
  });
});
