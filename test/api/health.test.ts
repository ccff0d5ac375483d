/** Probes, metrics and the API description: on a port of their own. */
import { describe, expect, test } from 'vitest';
import { chatOk } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { startUnreadyForTest, useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';

const gateway = useGateway();
const user = useUser(gateway);

const admin = (path: string) => httpClient(gateway.adminUrl).get(path);

interface OpenApi {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

describe('the admin port', () => {
  test.each(['/healthz', '/readyz'])('answers %s with 200', async (path) => {
    const response = await admin(path);
    expect(response.status, response.text).toBe(200);
  });

  test('puts a request id on every answer and uses the one envelope', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json'])
      expect((await admin(path)).headers['x-request-id'], path).toBeTypeOf('string');
    expectError(await admin('/nothing'), { status: 404, type: 'not_found_error' });
  });

  test('serves metrics in Prometheus form, with our prefix', async () => {
    await chatOk(user.client);
    const response = await admin('/metrics');
    expect(response.status).toBe(200);
    expect(response.headers['content-type']).toMatch(/text\/plain|openmetrics/);
    expect(response.text).toMatch(/^# TYPE gw_/m);
    expect(response.text).toMatch(/^gw_\w+\{?.* \d/m);
    for (const secret of [user.key, user.id, user.email]) expect(response.text).not.toContain(secret);
  });

  test('keeps the number of series bounded, whatever clients send', async () => {
    // Those of the process come with the first garbage collection of each kind, whoever asks for what.
    const series = (text: string) =>
      text.split('\n').filter((line) => line !== '' && !/^(#|nodejs_|process_)/.test(line)).length;
    await user.client.get('/v1/unknown-0');
    await user.client.request('POST', '/v1/chat/completions', { body: { model: 'gw/x0', messages: [] } });
    const before = series((await admin('/metrics')).text);
    for (let index = 1; index <= 50; index += 1) {
      await user.client.get(`/v1/unknown-${index}`);
      await user.client.get(`/v1/models/nothing-${index}`);
      await user.client.post('/v1/chat/completions', { model: `gw/x${index}`, messages: [] });
      await chatOk(user.client, {}, { 'x-gateway-override-model': `openai:model-${index}` });
    }
    expect(series((await admin('/metrics')).text) - before).toBeLessThan(120);
  });

  test('serves the API description openly', async () => {
    const response = await admin('/openapi.json');
    expect(response.status).toBe(200);
    const document = response.json<OpenApi>();
    expect(document.openapi).toMatch(/^3\./);
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    for (const operation of [
      'POST /v1/users',
      'POST /v1/keys',
      'GET /v1/keys',
      'POST /v1/chat/completions',
      'GET /v1/logs',
      'GET /v1/stats',
      'GET /v1/models',
    ])
      expect(operations).toContain(operation);
    expect(operations.some((operation) => /^DELETE \/v1\/keys\/\{\w+\}$/.test(operation))).toBe(true);
  });

  test.each(['/v1/users', '/v1/keys', '/v1/chat/completions'])('does not serve the API: %s', async (path) => {
    expect((await admin(path)).status).toBe(404);
    expect((await httpClient(gateway.adminUrl).post(path, {})).status).toBe(404);
  });
});

describe('the API port', () => {
  test.each(['/metrics', '/healthz', '/readyz'])('does not serve %s to a stranger', async (path) => {
    const response = await httpClient(gateway.url).get(path);
    expect([401, 404]).toContain(response.status);
    expect(response.text).not.toContain('gw_http');
  });

  test('serves the API description to holders of a service key, the same one', async () => {
    expectError(await httpClient(gateway.url).get('/openapi.json'), {
      status: 401,
      type: 'authentication_error',
    });
    const response = await user.client.get('/openapi.json');
    expect(response.status).toBe(200);
    expect(response.json<OpenApi>()).toEqual((await admin('/openapi.json')).json<OpenApi>());
  });
});

describe('a gateway whose database is not right', () => {
  const named = (part: 'hostname' | 'password' | 'pathname' | 'port' | 'username', value: string): string => {
    const url = new URL(gateway.database.url);
    url[part] = value;
    return url.toString();
  };

  test.each<[what: string, url: () => string, reason: string]>([
    [
      'another password',
      () => named('password', 'CANARY-PASSWORD'),
      'Postgres refuses the user or the password',
    ],
    [
      'a user that is not there',
      () => named('username', 'CANARY-USER'),
      'Postgres refuses the user or the password',
    ],
    [
      'a database that is not there',
      () => named('pathname', '/CANARY-DATABASE'),
      'Postgres does not have the database',
    ],
    ['a port where nobody listens', () => named('port', '1'), 'Postgres cannot be reached'],
    [
      'a host that does not resolve',
      () => named('hostname', 'canary-host.invalid'),
      'Postgres cannot be reached',
    ],
  ])('says so in words of its own: %s', async (_what, url, reason) => {
    const database = { url: url(), drop: async () => undefined };
    const other = await startUnreadyForTest({ database, vendors: gateway.vendors });
    const body = await eventually(async () => {
      const response = await httpClient(other.adminUrl).get('/readyz');
      expect(response.status).toBe(503);
      return response.json<{ reason: string }>().reason.includes('not been reached') ? undefined : response;
    });
    expect(body.json<{ reason: string }>().reason).toBe(reason);
    expect(body.text.toLowerCase()).not.toContain('canary');
    expect(other.output()).not.toContain('CANARY-PASSWORD');
  });
});
