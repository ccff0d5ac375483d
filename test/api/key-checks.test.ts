/** Beside SPEC 4.2 to 4.4: whether the vendor knows a stored key. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { chat, chatOk, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import type { HttpResponse } from '../harness/gateway/http-client.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { addKey, providerSecret, registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { startRedis } from '../harness/servers/redis.ts';
import { useServer } from '../harness/servers/use-started.ts';
import type { VendorName } from '../harness/vendors/vendor-pack.ts';
import { failure, hang, reset, respond } from '../harness/vendors/vendor-plans.ts';
import type { Script } from '../harness/vendors/vendor-reply.ts';
import type { KeyRecord } from '../harness/vendors/wire-types.ts';

const gateway = useGateway();

interface CheckBody {
  readonly id: string;
  readonly provider: string;
  readonly residency: string;
  readonly verdict: string;
  readonly reason: string;
  readonly status: number | null;
  readonly latency_ms: number;
  readonly rejected_in_a_row: number;
}

const check = (user: User, keyId: string): Promise<HttpResponse> =>
  user.client.request('POST', `/v1/keys/${keyId}/check`);

async function checked(user: User, keyId: string): Promise<CheckBody> {
  const response = await check(user, keyId);
  expect(response.status, response.text).toBe(200);
  return response.json<CheckBody>();
}

/** A user with one key, and its id. */
async function userWith(provider: VendorName, of = gateway): Promise<{ user: User; id: string }> {
  const user = await registerWithKeys(of.url, [provider]);
  const [key] = (await user.client.get('/v1/keys')).json<KeyRecord[]>();
  return { user, id: key?.id ?? '' };
}

const selfHosted = (user: User, base_url: string, additions: object = {}): Promise<KeyRecord> =>
  addKey(user, {
    provider: 'self_hosted',
    api_key: 'placeholder',
    base_url,
    declared_region: 'ap-south-1',
    ...additions,
  });

const errorBody = (message: string, code: string | null = null): string =>
  JSON.stringify({ error: { message, type: 'error', code } });

describe('a check', () => {
  test.each<[provider: VendorName, path: string, headers: (secret: string) => Record<string, string>]>([
    ['openai', '/v1/models', (secret) => ({ authorization: `Bearer ${secret}` })],
    ['together', '/v1/models', (secret) => ({ authorization: `Bearer ${secret}` })],
    ['sarvam', '/v2/models', (secret) => ({ 'api-subscription-key': secret })],
    [
      'anthropic',
      '/v1/models?limit=1',
      (secret) => ({ 'x-api-key': secret, 'anthropic-version': '2023-06-01' }),
    ],
  ])('asks %s for its models, once, with the key and nothing else', async (provider, path, headers) => {
    const { user, id } = await userWith(provider);
    const residency = provider === 'sarvam' ? 'india' : 'global';
    expect(await checked(user, id)).toEqual({
      id,
      provider,
      residency,
      verdict: 'valid',
      reason: 'The server listed its models.',
      status: 200,
      latency_ms: expect.any(Number),
      rejected_in_a_row: 0,
    });
    const [asked, ...more] = gateway.vendors.ledger();
    expect(more).toEqual([]);
    expect(asked).toMatchObject({
      method: 'GET',
      path,
      bodyText: '',
      headers: headers(providerSecret(user, provider)),
    });
    expect(asked?.headers).not.toHaveProperty('content-length');
  });

  test.each<[name: string, provider: VendorName, script: Script, verdict: string, status: number | null]>([
    ['an unknown key', 'openai', failure(401), 'rejected', 401],
    ['an unknown key at Sarvam', 'sarvam', failure(403), 'rejected', 403],
    [
      'a bad key told as a bad request',
      'openai',
      respond(400, errorBody('bad', 'invalid_api_key')),
      'rejected',
      400,
    ],
    ['an account without money', 'together', failure(402), 'out_of_quota', 402],
    [
      'an account without money at Anthropic',
      'anthropic',
      failure(400, {}, 'Your credit balance is too low'),
      'out_of_quota',
      400,
    ],
    [
      'a quota that is used up',
      'openai',
      respond(429, errorBody('x', 'insufficient_quota')),
      'out_of_quota',
      429,
    ],
    ['a failure', 'openai', failure(500), 'unreachable', 500],
    ['no such path', 'openai', failure(404), 'unreachable', 404],
    ['a bad request', 'openai', failure(400), 'unreachable', 400],
    ['a redirect', 'openai', respond(302, '', { location: 'http://127.0.0.1:1/' }), 'unreachable', 302],
    ['a web page', 'openai', respond(200, '<html>', { 'content-type': 'text/html' }), 'unreachable', 200],
    ['a reset connection', 'openai', reset, 'unreachable', null],
  ])('answers %s of %s by a verdict', async (_name, provider, script, verdict, status) => {
    const { user, id } = await userWith(provider);
    gateway.vendors[provider].script(script);
    const body = await checked(user, id);
    expect(body).toMatchObject({ verdict, status });
    expect(body.reason).not.toBe('');
    expect(gateway.vendors.ledger()).toHaveLength(1);
  });

  test('never tells the secret, whatever the vendor says', async () => {
    const { user, id } = await userWith('openai');
    const secret = providerSecret(user, 'openai');
    gateway.vendors.openai.script(respond(401, errorBody(`Incorrect API key provided: ${secret}`)));
    const response = await check(user, id);
    expect(response.json<CheckBody>().reason).toMatch(/^Incorrect API key provided: /);
    expect(response.text).not.toContain(secret);
    expect(gateway.output()).not.toContain(secret);
  });

  test('reads no more of a refusal than it needs', async () => {
    const { user, id } = await userWith('openai');
    const endless = Array.from({ length: 64 }, () => 'x'.repeat(16 * 1024));
    gateway.vendors.openai.script(respond(401, endless, { 'content-type': 'text/plain' }, 'hang'));
    const body = await checked(user, id);
    expect(body.verdict).toBe('rejected');
    expect(body.reason.length).toBeLessThanOrEqual(500);
    expect(await gateway.vendors.openai.ledger[0]?.closedEarly).toBe(true);
  });

  test('ends with its client', async () => {
    const { user, id } = await userWith('openai');
    gateway.vendors.openai.script(hang);
    const leaving = new AbortController();
    const path = `/v1/keys/${id}/check`;
    const asked = user.client.request('POST', path, { signal: leaving.signal }).catch(() => null);
    const received = await gateway.vendors.openai.received(0);
    leaving.abort();
    expect(await received.closedEarly).toBe(true);
    await asked;
  });

  test('of a key whose seal is broken asks nobody', async () => {
    const { user, id } = await userWith('openai');
    const database = new pg.Client({ connectionString: gateway.database.url });
    await database.connect();
    await database.query(
      `UPDATE provider_keys SET ciphertext = '\\x00112233445566778899aabbccddeeff00' WHERE id = $1`,
      [id],
    );
    await database.query(`SELECT pg_notify('gw_key_changes', $1)`, [user.id]);
    await database.end();
    await expect
      .poll(() => checked(user, id), { interval: 7_000 })
      .toMatchObject({
        verdict: 'unreachable',
        reason: 'The stored provider key cannot be opened; register it again.',
        status: null,
      });
  });

  test('tells how often in a row requests found the key rejected; the list of keys does not', async () => {
    const { user, id } = await userWith('openai');
    gateway.vendors.openai.script(failure(401), failure(401), failure(500), failure(401));
    for (let index = 0; index < 4; index += 1) await chat(user.client);
    await logRowsOnceThere(user.client, 4);
    expect((await checked(user, id)).rejected_in_a_row).toBe(3);
    const [record] = (await user.client.get('/v1/keys')).json<KeyRecord[]>();
    expect(Object.keys(record ?? {})).toHaveLength(7);
    await chatOk(user.client);
    await logRowsOnceThere(user.client, 5);
    expect((await checked(user, id)).rejected_in_a_row).toBe(0);
  });
});

describe('where everybody is bound to India', () => {
  const india = useGateway({ tables: tables({ residency: { policy: 'india' } }) });

  test('a key that would be used elsewhere is not tried: no socket is opened', async () => {
    const { user, id } = await userWith('openai', india);
    expectError(await check(user, id), { status: 422, type: 'residency_error' });
    expect(india.vendors.ledger()).toEqual([]);
    const indian = await userWith('sarvam', india);
    expect(await checked(indian.user, indian.id)).toMatchObject({ verdict: 'valid', residency: 'india' });
  });
});

describe("a user's own server", () => {
  test('is asked below its address, with what its key is', async () => {
    const user = await registerUser(gateway.url);
    const key = await selfHosted(user, `${gateway.vendors.openai.url}/base/v1`, { api_key: 'mine' });
    expect(await checked(user, key.id)).toMatchObject({
      provider: 'self_hosted',
      residency: 'india',
      verdict: 'valid',
    });
    expect(gateway.vendors.openai.ledger[0]).toMatchObject({
      path: '/base/v1/models',
      headers: { authorization: 'Bearer mine' },
    });
  });

  test('that is not there is unreachable, with the reason', async () => {
    const user = await registerUser(gateway.url);
    const key = await selfHosted(user, 'http://127.0.0.1:1/v1');
    expect(await checked(user, key.id)).toMatchObject({
      verdict: 'unreachable',
      reason: 'The connection was refused.',
      status: null,
    });
  });

  test.each(['http://169.254.169.254/v1', 'http://[fd00:ec2::254]/v1'])(
    'at %s is never asked: the outbound policy holds here too',
    async (address) => {
      const user = await registerUser(gateway.url);
      const key = await selfHosted(user, address);
      expect(await checked(user, key.id)).toMatchObject({
        verdict: 'unreachable',
        reason: 'This address is not allowed by the outbound policy.',
      });
    },
  );

  test("at the gateway's own database is never asked", async () => {
    const user = await registerUser(gateway.url);
    const { host } = new URL(gateway.database.url);
    const key = await selfHosted(user, `http://${host}/v1`);
    expect((await checked(user, key.id)).reason).toBe('This address is not allowed by the outbound policy.');
  });
});

describe('nobody checks', () => {
  test("others' keys, or none", async () => {
    const { id } = await userWith('openai');
    const stranger = await registerUser(gateway.url);
    for (const key of [id, randomUUID(), 'x', '%00']) {
      expectError(await check(stranger, key), { status: 404, type: 'not_found_error' });
    }
    const anonymous = httpClient(gateway.url);
    expectError(await anonymous.request('POST', `/v1/keys/${id}/check`), {
      status: 401,
      type: 'authentication_error',
    });
    expect(gateway.vendors.ledger()).toEqual([]);
  });

  test('with another method', async () => {
    const { user, id } = await userWith('openai');
    const response = await user.client.get(`/v1/keys/${id}/check`);
    expectError(response, { status: 405, type: 'invalid_request_error' });
    expect(response.headers['allow']).toBe('POST');
  });
});

async function useUp(user: User, id: string): Promise<HttpResponse> {
  for (let index = 0; index < 10; index += 1) await checked(user, id);
  return check(user, id);
}

describe('more than ten checks of one user in a minute', () => {
  test('are refused with the time to wait, before the key is looked for; others go on', async () => {
    const { user, id } = await userWith('openai');
    const refused = await useUp(user, id);
    expectError(refused, { status: 429, type: 'rate_limit_error', code: 'too_many_key_checks' });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect((await check(user, randomUUID())).status).toBe(429);
    expect(gateway.vendors.ledger()).toHaveLength(10);
    const other = await userWith('openai');
    await checked(other.user, other.id);
  });

  describe('on replicas with one Redis', () => {
    const redis = useServer(startRedis);
    const first = useGateway(() => ({ redisUrl: redis.url }));
    const second = useGateway(() => ({ redisUrl: redis.url, database: first.database }));

    test('are counted together', async () => {
      const { user, id } = await userWith('openai', first);
      for (let index = 0; index < 10; index += 1) await checked(user, id);
      const elsewhere = { ...user, client: httpClient(second.url, user.key) };
      expectError(await check(elsewhere, id), { status: 429, type: 'rate_limit_error' });
    });
  });
});

describe('with the client of the release before', () => {
  const undici = useGateway({ env: { GW_UPSTREAM_CLIENT: 'undici' } });

  test('a check is the same', async () => {
    const { user, id } = await userWith('anthropic', undici);
    expect(await checked(user, id)).toMatchObject({ verdict: 'valid' });
    expect(undici.vendors.ledger()).toMatchObject([{ method: 'GET', bodyText: '' }]);
    undici.vendors.anthropic.script(failure(401));
    expect(await checked(user, id)).toMatchObject({ verdict: 'rejected' });
  });
});
