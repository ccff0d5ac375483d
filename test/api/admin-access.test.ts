/** Who gets to the admin API: on the admin port only, with the admin token only, and nobody by guessing. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { adminRouteList } from '../../src/http/admin/admin-routes.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import { httpClient, sendRaw } from '../harness/gateway/http-client.ts';
import { registerUser } from '../harness/gateway/register.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { startReplicaForTest, useReplica } from '../harness/gateway/use-replica.ts';
import { metric } from '../harness/measure/fault-metrics.ts';

const token = 'an-admin-token-of-sufficient-length';
const gateway = useGateway({ env: { GW_ADMIN_TOKEN: token } });
const closed = useReplica(gateway);

const operations = adminRouteList.map(
  ({ method, path }) => [method, path.replaceAll(/\{\w+\}/g, () => randomUUID())] as const,
);
const unknownPath = { status: 404, type: 'not_found_error', code: 'not_found' };

/** Wrong tokens are remembered for a minute by the gateway that saw them: such tests have one of their own. */
const withToken = { env: { GW_ADMIN_TOKEN: token } };

describe.each(operations)('%s %s', (method, path) => {
  test('is unknown without an admin token, and on the API port', async () => {
    for (const url of [closed.adminUrl, closed.url, gateway.url]) {
      for (const key of [null, token])
        expectError(await httpClient(url, key).request(method, path), unknownPath);
    }
  });

  test('asks for the token before anything else', async () => {
    const body = method === 'GET' ? undefined : '{"not json';
    const response = await httpClient(gateway.adminUrl).request(method, path, { body });
    expectError(response, { status: 401, type: 'authentication_error', code: 'invalid_admin_token' });
    expect(response.headers['www-authenticate']).toBe('Bearer');
  });
});

describe('a token', () => {
  /** Wrong tokens are counted: these tests send fewer than are refused. */
  const guarded = useReplica(gateway, withToken);

  test.each<[name: string, headers: string]>([
    ['in the query', ''],
    ['in another case', `Authorization: Bearer ${token.toUpperCase()}\r\n`],
    ['of another scheme', `Authorization: Basic ${token}\r\n`],
    ['with one character more', `Authorization: Bearer ${token}x\r\n`],
    ['with one character less', `Authorization: Bearer ${token.slice(0, -1)}\r\n`],
    ['twice, of which one is wrong', `Authorization: Bearer ${token}\r\nAuthorization: Bearer x\r\n`],
    ['in another header', `X-Admin-Token: ${token}\r\n`],
  ])('%s does not open it', async (_name, headers) => {
    const { text } = await sendRaw(guarded.adminUrl, {
      parts: [
        `GET /admin/users?token=${token}&access_token=${token} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`,
      ],
    });
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    expect(text).toContain('invalid_admin_token');
  });

  test('of a user does not open it, nor the admin token what is of users', async () => {
    const { adminUrl, url } = guarded;
    const user = await registerUser(url);
    expect((await httpClient(adminUrl, user.key).get('/admin/users')).status).toBe(401);
    expect((await httpClient(url, token).get('/v1/keys')).status).toBe(401);
  });

  test('of a megabyte is refused as what it is: too long a header', async () => {
    const { text } = await sendRaw(gateway.adminUrl, {
      parts: [
        `GET /admin/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${'x'.repeat(1024 * 1024)}\r\n\r\n`,
      ],
    });
    expect(text).toMatch(/^HTTP\/1\.1 431 |^$/);
    expect((await httpClient(gateway.adminUrl, token).get('/admin/users')).status).toBe(200);
  });
});

test('whoever guesses is refused for a while, with the right token too; probes and metrics are answered', async () => {
  const one = await startReplicaForTest(gateway, withToken);
  const ask = (key: string | null) => httpClient(one.adminUrl, key).get('/admin/users');
  // Nobody guesses by sending nothing.
  for (let count = 0; count < 20; count += 1) expect((await ask(null)).status).toBe(401);
  expect((await ask(token)).status).toBe(200);
  for (let count = 0; count < 10; count += 1) expect((await ask(`wrong-${count}`)).status).toBe(401);
  for (const key of ['wrong', token]) {
    const refused = await ask(key);
    expectError(refused, { status: 429, type: 'rate_limit_error', code: 'too_many_wrong_tokens' });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
  }
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json'])
    expect((await httpClient(one.adminUrl).get(path)).status).toBe(200);
  expect(await metric(one, 'gw_auth_failures_total', ['reason="admin_token"'])).toBe(30);
  expect(await metric(one, 'gw_auth_failures_total', ['reason="admin_guesses"'])).toBe(2);
  expect(
    await metric(one, 'gw_admin_requests_total', [
      'http_route="/admin/users"',
      'http_response_status_code="429"',
    ]),
  ).toBe(2);
  const reasons = () => one.logs().map((line) => line['reason']);
  await expect.poll(reasons).toEqual(expect.arrayContaining(['admin_token', 'admin_guesses']));
  expect(one.output()).not.toContain('wrong-');
  expect(one.output()).not.toContain(token);
});

describe('the admin API speaks as the API does', () => {
  const ask = (method: string, path: string, options = {}) =>
    httpClient(gateway.adminUrl, token).request(method, path, options);

  test.each([
    ['PUT', '/admin/users', 'GET, HEAD, POST'],
    ['POST', `/admin/users/${randomUUID()}`, 'GET, HEAD, PATCH, DELETE'],
    ['DELETE', '/admin/spend', 'GET, HEAD'],
    ['POST', '/metrics', 'GET, HEAD'],
  ])('%s %s is 405, and says what is taken', async (method, path, allow) => {
    const response = await ask(method, path);
    expectError(response, { status: 405, type: 'invalid_request_error', code: 'method_not_allowed' });
    expect(response.headers['allow']).toBe(allow);
  });

  test.each([
    ['/admin'],
    ['/admin/'],
    ['/admin/users/'],
    ['/Admin/users'],
    ['/admin/users/a/b'],
    ['/v1/users'],
  ])('%s is unknown', async (path) => {
    expect((await ask('GET', path)).status).toBe(404);
  });

  test.each([
    ['that cannot be decoded', '/admin/users/%FF'],
    ['with a name longer than any', `/admin/users/${'a'.repeat(2000)}`],
  ])('a path %s is unknown in our envelope', async (_name, path) => {
    const response = await ask('GET', path);
    expectError(response, unknownPath);
    expect(response.headers['x-request-id']).toBeDefined();
  });

  test('bodies are small, JSON and UTF-8', async () => {
    const post = (body: unknown, headers = {}) => ask('POST', '/admin/users', { body, headers });
    expect((await post({ email: 'x'.repeat(20_000) })).status).toBe(413);
    expect((await post('email=x', { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post(Buffer.from([0x22, 0xff, 0x22]))).status).toBe(422);
    expect((await post('{"__proto__": {}}')).status).toBe(422);
  });

  test('it is described on the admin port where there is one, and nowhere else', async () => {
    const described = async (url: string, key: string | null) => {
      const { paths, components } = (await httpClient(url, key).get('/openapi.json')).json<{
        paths: Record<string, Record<string, { security?: unknown }>>;
        components: { securitySchemes: object };
      }>();
      const admin = Object.entries(paths).flatMap(([path, methods]) =>
        path.startsWith('/admin')
          ? Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`)
          : [],
      );
      expect(Object.keys(components.securitySchemes).includes('adminToken')).toBe(admin.length > 0);
      return admin.sort();
    };
    const all = adminRouteList.map(({ method, path }) => `${method} ${path}`).sort();
    expect(await described(gateway.adminUrl, null)).toEqual(all);
    expect(await described(closed.adminUrl, null)).toEqual([]);
    const user = await registerUser(gateway.url);
    expect(await described(gateway.url, user.key)).toEqual([]);
  });
});
