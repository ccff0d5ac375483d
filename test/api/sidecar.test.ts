/** The sidecar profile: no database, one service key and the provider keys from files, rows on stdout. */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { newServiceKey } from '../../src/core/account/service-key.ts';
import { adminRouteList } from '../../src/http/admin/admin-routes.ts';
import { chat, chatOk, streamed } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { startGateway } from '../harness/gateway/start-gateway.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { useFolder } from '../harness/servers/use-started.ts';

const serviceKey = newServiceKey(randomBytes(32));
const canary = 'sk-canary-sidecar-5d1f';
const folder = useFolder();

const keysFile = (): string => join(folder.path, 'keys.yaml');

const environment = (): Record<string, string | undefined> => ({
  DATABASE_URL: undefined,
  GW_SEALING_KEYS: undefined,
  GW_HOST: undefined,
  GW_PROFILE: 'sidecar',
  GW_SERVICE_KEY: serviceKey,
  GW_PROVIDER_KEYS_FILE: keysFile(),
  GW_ADMIN_TOKEN: 'an-admin-token-of-sufficient-length',
});

const gateway = useGateway(async () => {
  await writeFile(keysFile(), JSON.stringify([{ provider: 'openai', api_key: canary }]));
  return { env: environment() };
});

const client = () => httpClient(gateway.url, serviceKey);

test('listens on loopback only, and is ready without any store', async () => {
  expect(new URL(gateway.url).hostname).toBe('127.0.0.1');
  expect((await httpClient(gateway.adminUrl).get('/readyz')).status).toBe(200);
});

test('answers as JSON and as a stream with the keys of the file', async () => {
  const completion = await chatOk(client());
  expect(completion.gateway.provider).toBe('openai');
  expect((await streamed(client(), { stream: true })).status).toBe(200);
  expect((await gateway.vendors.openai.received(0)).headers['authorization']).toBe(`Bearer ${canary}`);
});

test('prints one row per request and no secret', async () => {
  const completion = await chatOk(client(), {}, { 'x-request-id': 'sidecar-row' });
  // Those of the tests before may be printed only now.
  const rows = () => gateway.logs().filter((line) => line['row_id'] !== undefined);
  const row = await eventually(async () => rows().find((line) => line['request_id'] === 'sidecar-row'));
  expect(row).toMatchObject({ provider: 'openai', status: 'success' });
  const ids = rows().map((line) => line['request_id']);
  expect(new Set(ids).size).toBe(ids.length);
  expect(completion.gateway.request_id).toBe('sidecar-row');
  expect(gateway.output()).not.toContain(canary);
  expect(gateway.output()).not.toContain(serviceKey);
});

test('caches in memory', async () => {
  const ask = () => chatOk(client(), { seed: 7 }, { 'x-gateway-cache': 'true' });
  expect((await ask()).gateway.cache_hit).toBe(false);
  expect((await ask()).gateway.cache_hit).toBe(true);
});

test('another service key is refused', async () => {
  const response = await chat(httpClient(gateway.url, newServiceKey(randomBytes(32))));
  expect(response.status).toBe(401);
});

describe('a route that needs a database', () => {
  test.each([
    ['POST', '/v1/users'],
    ['GET', '/v1/keys'],
    ['POST', '/v1/keys'],
    ['DELETE', '/v1/keys/00000000-0000-4000-8000-000000000000'],
    ['GET', '/v1/logs'],
    ['GET', '/v1/stats'],
  ])('%s %s says that it is not in this profile', async (method, path) => {
    const response = await client().request(method, path, method === 'POST' ? { body: '{}' } : {});
    expect(response.status).toBe(404);
    expect(response.json<{ error: { code: string } }>().error.code).toBe('not_in_profile');
  });
});

test.each(adminRouteList.map(({ method, path }) => [method, path] as const))(
  '%s %s says so too, on the admin port',
  async (method, path) => {
    const response = await httpClient(gateway.adminUrl).request(method, path);
    expectError(response, { status: 404, type: 'not_found_error', code: 'not_in_profile' });
  },
);

test('the description has only what is in this profile', async () => {
  const { paths } = (await client().get('/openapi.json')).json<{ paths: Record<string, unknown> }>();
  expect(Object.keys(paths).sort()).toEqual(['/v1/chat/completions', '/v1/models', '/v1/models/{id}']);
});

describe('a start that cannot work', () => {
  test.each([
    ['without a service key', { GW_SERVICE_KEY: undefined }, /GW_SERVICE_KEY/],
    ['with a malformed service key', { GW_SERVICE_KEY: 'gw_nonsense' }, /new-key/],
    ['without its keys file', { GW_PROVIDER_KEYS_FILE: '/nowhere/keys.yaml' }, /GW_PROVIDER_KEYS_FILE/],
  ])('%s ends with one clear line', async (_name, change, message) => {
    await expect(startGateway({ env: { ...environment(), ...change } })).rejects.toThrow(message);
  });
});
