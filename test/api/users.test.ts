/** SPEC 4.1 and 2.1: registering a user. */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { answeredInTime } from '../harness/gateway/answered-in-time.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import type { HttpClient } from '../harness/gateway/http-client.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startForTest, useGateway } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { startRedis } from '../harness/servers/redis.ts';
import { closeAfterTest } from '../harness/servers/use-started.ts';
import type { Registration } from '../harness/vendors/wire-types.ts';
import { uuidPattern } from '../harness/vendors/wire-types.ts';

const gateway = useGateway();
let client: HttpClient;

beforeAll(() => {
  client = httpClient(gateway.url);
});

const freshEmail = () => `${randomUUID()}@example.com`;
const register = (email: unknown) => client.post('/v1/users', { email });

/**
 * Whether the limits let a registration pass that a proxy passes on for this address: one for which Postgres is late, as
 * it may be on a busy machine, has passed them too.
 */
async function passFrom(url: string, address: string): Promise<boolean> {
  const headers = { 'x-forwarded-for': address };
  const { status, text } = await httpClient(url).post('/v1/users', { email: freshEmail() }, headers);
  const late = status === 503 && text.includes('"database_unavailable"');
  if (!late) expect([201, 429], text).toContain(status);
  return status !== 429;
}

describe('a registration', () => {
  test('answers 201 with exactly the four fields', async () => {
    const email = freshEmail();
    const response = await register(email);
    expect(response.status, response.text).toBe(201);
    const body = response.json<Registration>();
    expect(Object.keys(body).sort()).toEqual(['api_key', 'email', 'shown_once', 'user_id']);
    expect(body).toMatchObject({ email, shown_once: true });
    expect(body.user_id).toMatch(uuidPattern);
    expect(body.api_key).toMatch(/^gw_[0-9A-Za-z]{43,}$/);
    expect(response.headers['content-type']).toMatch(/^application\/json/);
    expect(response.headers['x-request-id']).toBeTypeOf('string');
  });

  test('gives a key that opens the authenticated endpoints', async () => {
    const { api_key: key } = (await register(freshEmail())).json<Registration>();
    expect((await httpClient(gateway.url, key).get('/v1/keys')).status).toBe(200);
  });

  test('gives every user another key and another id', async () => {
    const bodies = await Promise.all(
      [1, 2, 3].map(async () => (await register(freshEmail())).json<Registration>()),
    );
    expect(new Set(bodies.map((body) => body.api_key)).size).toBe(3);
    expect(new Set(bodies.map((body) => body.user_id)).size).toBe(3);
  });

  test('needs no authentication and ignores a wrong one', async () => {
    const response = await client.post(
      '/v1/users',
      { email: freshEmail() },
      { authorization: 'Bearer wrong' },
    );
    expect(response.status).toBe(201);
  });

  test('may not be cached by anybody, since it carries a key', async () => {
    expect((await register(freshEmail())).headers['cache-control']).toMatch(/no-store/);
  });

  test('echoes the case of the address as given', async () => {
    const email = `Mixed.Case-${randomUUID()}@Example.COM`;
    expect((await register(email)).json<Registration>().email).toBe(email);
  });
});

describe('an address that is taken', () => {
  test('in letters of another script is the same address as in ASCII', async () => {
    const local = randomUUID();
    expect((await register(`${local}@bücher.example`)).json<Registration>().email).toBe(
      `${local}@bücher.example`,
    );
    const response = await register(`${local}@XN--BCHER-KVA.example`);
    expectError(response, { status: 409, type: 'conflict_error', param: 'email' });
  });

  test.each([
    ['as it was', (email: string) => email],
    ['in capitals', (email: string) => email.toUpperCase()],
    ['with spaces around it', (email: string) => `  ${email} `],
  ])('is refused %s with 409', async (_name, vary) => {
    const email = freshEmail();
    expect((await register(email)).status).toBe(201);
    const response = await register(vary(email));
    expectError(response, { status: 409, type: 'conflict_error', param: 'email' });
    expect(response.headers['x-should-retry']).toBe('false');
  });

  test('is given out once when 50 ask for it at the same moment, case variants included', async () => {
    for (let round = 0; round < 3; round += 1) {
      const email = freshEmail();
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          answeredInTime(() => register(index % 2 === 0 ? email : email.toUpperCase())),
        ),
      );
      const statuses = answers.map(({ status }) => status);
      const given = statuses.filter((status) => status === 201).length;
      // Whoever got it may have been answered too late to know: asked again, it is taken.
      const wasLate = answers.some(({ asked }) => asked > 1);
      expect(given, String(statuses)).toBe(wasLate ? Math.min(given, 1) : 1);
      expect(statuses.filter((status) => status === 409)).toHaveLength(50 - given);
    }
  });
});

describe('an address that is none', () => {
  test.each([
    ['empty', ''],
    ['blank', '   '],
    ['without @', 'nobody.example.com'],
    ['without local part', '@example.com'],
    ['without domain', 'nobody@'],
    ['with two @', 'a@b@example.com'],
    ['with a space inside', 'no body@example.com'],
    ['with a line break', 'nobody@example.com\nbcc:x@example.com'],
    ['with a NUL', 'no\u0000body@example.com'],
    ['with a lone surrogate', 'no\ud800body@example.com'],
    ['longer than an address can be', `${'a'.repeat(320)}@example.com`],
    ['a number', 42],
    ['null', null],
    ['an array', ['a@example.com']],
    ['an object', { email: 'a@example.com' }],
    ['a carriage return and spaces behind it', `a@example.com\r${' '.repeat(80)}`],
    ['a line of its own', '\n a@example.com\n'],
    ['a line separator behind it', 'a@example.com\u2028'],
    ['what turns a line around before it', '\u202ea@example.com'],
    ['true', true],
  ])('is refused with 422: %s', async (_name, email) => {
    expectInvalid(await register(email), 'email');
  });

  test('is refused when it is missing', async () => {
    expectInvalid(await client.post('/v1/users', {}), 'email');
  });

  test.each([['[]'], ['"a@example.com"'], ['null'], ['42']])(
    'is refused when the body is %s',
    async (body) => {
      expectInvalid(await client.post('/v1/users', body));
    },
  );

  test('does not become SQL', async () => {
    const response = await register("x'); DROP TABLE users; --@example.com");
    expect([201, 422]).toContain(response.status);
    expect((await register(freshEmail())).status).toBe(201);
  });
});

describe('registration by policy', () => {
  const token = 'a-token-of-enough-length';

  /** What the description says of registration; undefined: nothing. */
  async function described({ adminUrl }: GatewayUnderTest): Promise<unknown> {
    const { text } = await httpClient(adminUrl).get('/openapi.json');
    const { paths } = JSON.parse(text) as { paths: Record<string, { post?: { security?: unknown } }> };
    return paths['/v1/users']?.post?.security;
  }

  test('token needs the token, which is checked before the body', async () => {
    const guarded = await startForTest({ env: { GW_REGISTRATION: 'token', GW_REGISTRATION_TOKEN: token } });
    const attempt = (authorization: string | undefined, body: unknown = { email: freshEmail() }) =>
      httpClient(guarded.url).post('/v1/users', body, authorization === undefined ? {} : { authorization });
    // Read as a service key is.
    for (const right of [`Bearer ${token}`, `bearer   ${token}`])
      expect((await attempt(right)).status).toBe(201);
    expect(await described(guarded)).toEqual([{ registrationToken: [] }]);
    for (const wrong of [undefined, 'Bearer wrong', `Bearer ${token}x`, token])
      for (const body of [{ email: freshEmail() }, { email: 'none' }, '{'])
        expectError(await attempt(wrong, body), {
          status: 401,
          type: 'authentication_error',
          code: 'invalid_registration_token',
        });
  });

  test('closed lets nobody in, and existing users go on', async () => {
    const user = (await register(freshEmail())).json<Registration>();
    const closed = await startForTest({ env: { GW_REGISTRATION: 'closed' }, database: gateway.database });
    const response = await httpClient(closed.url).post('/v1/users', { email: freshEmail() });
    expectError(response, { status: 403, type: 'invalid_request_error' });
    expect(await described(closed)).toBeUndefined();
    expect((await httpClient(closed.url, user.api_key).get('/v1/keys')).status).toBe(200);
  });
});

describe('registration limits', () => {
  test('of one address do not use up the limit of all', async () => {
    const limited = await startForTest({
      env: {
        GW_REGISTRATIONS_PER_MINUTE: '4',
        GW_REGISTRATIONS_PER_MINUTE_PER_IP: '1',
        GW_TRUSTED_PROXY_HOPS: '1',
      },
    });
    const from = (address: string) => passFrom(limited.url, address);
    const flood = [];
    for (let index = 0; index < 10; index += 1) flood.push(await from('203.0.113.1'));
    expect(flood).toEqual([true, ...Array.from({ length: 9 }, () => false)]);
    expect(await from('203.0.113.2')).toBe(true);
  });

  test('answer 429 with Retry-After once the configured rate is used up', async () => {
    const limited = await startForTest({ env: { GW_REGISTRATIONS_PER_MINUTE: '3' } });
    for (let index = 0; index < 3; index += 1) expect(await passFrom(limited.url, '203.0.113.1')).toBe(true);
    const last = await httpClient(limited.url).post('/v1/users', { email: freshEmail() });
    expectError(last, { status: 429, type: 'rate_limit_error' });
    expect(Number(last.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  });

  // Redis has 40 ms for each answer: on a machine that stalls for longer a replica counts alone, as it should.
  test('hold over replicas that share a Redis, and per replica once it is gone', { retry: 2 }, async () => {
    const redis = closeAfterTest(await startRedis());
    const env = {
      GW_REGISTRATIONS_PER_MINUTE: '7',
      GW_REGISTRATIONS_PER_MINUTE_PER_IP: '3',
      GW_TRUSTED_PROXY_HOPS: '1',
    };
    const replicas = await Promise.all(
      [1, 2].map(() => startForTest({ env, redisUrl: redis.url, database: gateway.database })),
    );
    const from = (replica: number, address: string) =>
      passFrom((replicas[replica % 2] as GatewayUnderTest).url, address);
    await eventually(
      async () =>
        replicas.every(({ logs }) => logs().some(({ msg }) => msg === 'cache store is up')) || undefined,
    );
    const passed: boolean[] = [];
    // The addresses of one /64 are one client.
    for (let index = 0; index < 6; index += 1) passed.push(await from(index, `2001:db8::${index + 1}`));
    expect(passed).toEqual([true, true, true, false, false, false]);
    for (let index = 0; index < 6; index += 1) passed.push(await from(index, `203.0.113.${index}`));
    expect(passed.slice(6)).toEqual([true, true, true, true, false, false]);
    await redis.kill();
    await eventually(
      async () =>
        replicas.every(({ logs }) =>
          logs().some(({ msg }) => String(msg).startsWith('cache store is down')),
        ) || undefined,
    );
    // Each has counted its own six already, refusals included.
    const later: boolean[] = [];
    for (let index = 0; index < 20; index += 1) later.push(await from(index, `198.51.100.${index}`));
    expect(later.at(-1)).toBe(false);
    expect(later.filter((one) => one)).toHaveLength(2);
  });

  test('per address cannot be dodged by a forged X-Forwarded-For', async () => {
    const limited = await startForTest({ env: { GW_REGISTRATIONS_PER_MINUTE_PER_IP: '2' } });
    const passed: boolean[] = [];
    for (let index = 0; index < 3; index += 1) passed.push(await passFrom(limited.url, `203.0.113.${index}`));
    expect(passed).toEqual([true, true, false]);
  });

  test('per address follow X-Forwarded-For when a proxy is trusted', async () => {
    const limited = await startForTest({
      env: { GW_REGISTRATIONS_PER_MINUTE_PER_IP: '1', GW_TRUSTED_PROXY_HOPS: '1' },
    });
    const from = (address: string) => passFrom(limited.url, address);
    expect(await from('203.0.113.1')).toBe(true);
    expect(await from('203.0.113.2')).toBe(true);
    expect(await from('198.51.100.9, 203.0.113.1')).toBe(false);
  });
});
