import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { KeyRefusal } from '../../src/adapters/postgres/provider-keys.ts';
import type { Clock } from '../../src/chat/ports.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { pathText } from '../../src/core/path-text.ts';
import { Secret } from '../../src/core/secret/secret.ts';
import { StoreAway } from '../../src/core/store-away.ts';
import type { RegistrationPolicy } from '../../src/http/access/registration-policy.ts';
import { registrationGuard } from '../../src/http/access/registration-policy.ts';
import { toGatewayError } from '../../src/http/answers/error-handler.ts';
import { activeLegacyName, markLegacy } from '../../src/http/legacy.ts';
import { requestIdOf } from '../../src/http/request-id.ts';
import { keyRefused } from '../../src/http/routes/keys.ts';
import { parseOrThrow, shownParam } from '../../src/http/schemas/parse.ts';
import { testTables } from '../chat/story.ts';

function thrown(run: () => unknown): GatewayError {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('the request id', () => {
  const idOf = (sent: string | string[] | undefined): string =>
    requestIdOf({ headers: { 'x-request-id': sent } } as unknown as IncomingMessage, () => 'fresh');

  test('is the one the client sent when it is well formed', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/), (sent) => {
        expect(idOf(sent)).toBe(sent);
      }),
      { examples: [['x'.repeat(128)], ['-'], ['_']] },
    );
  });

  test('is a fresh one otherwise', () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !/^[A-Za-z0-9_-]{1,128}$/.test(text)),
        (sent) => {
          expect(idOf(sent)).toBe('fresh');
        },
      ),
      { examples: [[''], ['x'.repeat(129)], ['a b'], ['a\n'], ['one, two'], ['é'], ['a.b']] },
    );
    expect(idOf(undefined)).toBe('fresh');
  });
});

describe('an error of the framework', () => {
  const error = (code: string, statusCode: number) => Object.assign(new Error('x'), { code, statusCode });

  test.each([
    [error('FST_ERR_CTP_INVALID_MEDIA_TYPE', 415), 415, 'unsupported_media_type'],
    [error('FST_ERR_ROUTE_MISSING_CONTENT_TYPE', 400), 400, 'refused'],
    [error('FST_ERR_OF_A_LATER_VERSION', 414), 414, 'refused'],
    [error('FST_ERR_OF_A_LATER_VERSION', 500), 500, 'internal_error'],
    [error('ERR_OF_A_VENDOR', 404), 500, 'internal_error'],
    [new Error('x'), 500, 'internal_error'],
  ])("is the client's fault only when the framework says so: %s", (thrownError, status, code) => {
    expect(toGatewayError(thrownError)).toMatchObject({ status, code });
  });
});

test.each([false, true])(
  'a store that is away is a 503 that says when to come back (crowded: %s)',
  (crowded) => {
    const cause = new Error('connect ECONNREFUSED 10.1.2.3:5432');
    const error = toGatewayError(new StoreAway(cause, crowded));
    expect(error).toMatchObject({
      status: 503,
      type: 'service_unavailable_error',
      code: 'database_unavailable',
      headers: { 'retry-after': '1' },
    });
    expect(error.message).toBe('The database is not available. Try again shortly.');
  },
);

test.each<[KeyRefusal, number, string, string, string]>([
  [
    { kind: 'taken' },
    409,
    'already_exists',
    'provider',
    'A key for openai is already registered; delete it first.',
  ],
  [
    { kind: 'too-many-keys', most: 100 },
    422,
    'too_many_keys',
    'provider',
    'At most 100 self_hosted keys can be registered; delete one first.',
  ],
  [
    { kind: 'too-many-bytes', most: 5 },
    422,
    'too_many_key_bytes',
    'api_key',
    'All provider keys of a user may take 5 bytes together; delete one first.',
  ],
])('a key that is refused as $kind', (refusal, status, code, param, message) => {
  const provider = refusal.kind === 'too-many-keys' ? 'self_hosted' : 'openai';
  expect(keyRefused(refusal, provider)).toMatchObject({ status, code, param, message });
});

describe('a parsed body', () => {
  const schema = z.strictObject({ list: z.array(z.strictObject({ n: z.number() })) });

  test.each<[name: string, value: unknown, param: string | null, code: string | null]>([
    ['a wrong type, by its path', { list: [{ n: 1 }, { n: 'x' }] }, 'list[1].n', null],
    ['an unknown field, by its path', { list: [{ n: 1, m: 2 }] }, 'list[0].m', 'unknown_field'],
    ['an unknown top-level field', { list: [], more: 1 }, 'more', 'unknown_field'],
    ['something that is no object', 'text', null, 'invalid_json'],
    ['nothing', undefined, null, 'invalid_json'],
    ['a list', [], null, 'invalid_json'],
  ])('names %s', (_name, value, param, code) => {
    const error = thrown(() => parseOrThrow(schema, value));
    expect([error.status, error.param, error.code]).toEqual([422, param, code]);
  });

  test('is returned when it fits', () => {
    expect(parseOrThrow(schema, { list: [{ n: 1 }] })).toEqual({ list: [{ n: 1 }] });
  });

  test('has paths as a person writes them, cut when a client made them long', () => {
    expect(pathText(['a', 0, 'b', 'c', 12])).toBe('a[0].b.c[12]');
    expect(shownParam('x'.repeat(64))).toHaveLength(64);
    expect(shownParam('x'.repeat(65))).toBe(`${'x'.repeat(64)}…`);
  });
});

describe('registration', () => {
  const open: RegistrationPolicy = { mode: 'open', token: null, perMinute: 0, perMinutePerIp: 0 };
  const request = (ip = '192.0.2.1', authorization?: string): FastifyRequest =>
    ({ ip, headers: { authorization } }) as unknown as FastifyRequest;

  test('is open without a limit', () => {
    const guard = registrationGuard(open, () => 0);
    for (let count = 0; count < 1000; count += 1) void guard(request());
  });

  test('that is closed answers 403', () => {
    const guard = registrationGuard({ ...open, mode: 'closed' }, () => 0);
    expect(thrown(() => guard(request()))).toMatchObject({ status: 403, code: 'registration_closed' });
  });

  test.each([
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer wrong',
    'Basic the-registration-token',
    'the-registration-token',
  ])('by token refuses %j with 401', (authorization) => {
    const guard = registrationGuard(
      { ...open, mode: 'token', token: new Secret('the-registration-token') },
      () => 0,
    );
    expect(thrown(() => guard(request('::1', authorization))).status).toBe(401);
  });

  test('by token takes the token', () => {
    const guard = registrationGuard(
      { ...open, mode: 'token', token: new Secret('the-registration-token') },
      () => 0,
    );
    void guard(request('::1', 'Bearer the-registration-token'));
    void guard(request('::1', 'bearer the-registration-token'));
  });

  test('by token is shut when no token is set', () => {
    const guard = registrationGuard({ ...open, mode: 'token' }, () => 0);
    expect(thrown(() => guard(request('::1', 'Bearer null'))).status).toBe(401);
  });

  test('by token is refused to a client that guesses, with the right token too, for the rest of the minute', () => {
    let nowMs = 0;
    let told = 0;
    const token = new Secret('the-registration-token');
    const guard = registrationGuard(
      { ...open, mode: 'token', token },
      () => nowMs,
      () => {
        told += 1;
      },
    );
    // Nobody guesses by sending nothing.
    for (let count = 0; count < 20; count += 1) expect(thrown(() => guard(request())).status).toBe(401);
    for (let count = 0; count < 10; count += 1)
      expect(thrown(() => guard(request('192.0.2.1', `Bearer wrong-${count}`))).status).toBe(401);
    nowMs = 20_000;
    for (const sent of ['Bearer wrong', 'Bearer the-registration-token', undefined])
      expect(thrown(() => guard(request('192.0.2.1', sent)))).toMatchObject({
        status: 429,
        code: 'too_many_wrong_tokens',
        headers: { 'retry-after': '40' },
      });
    expect(told).toBe(33);
    void guard(request('192.0.2.2', 'Bearer the-registration-token'));
    nowMs = 60_000;
    void guard(request('192.0.2.1', 'Bearer the-registration-token'));
  });

  test('is limited per address, and says how long to wait', () => {
    let nowMs = 0;
    const guard = registrationGuard({ ...open, perMinutePerIp: 2 }, () => nowMs);
    void guard(request());
    nowMs = 10_500;
    void guard(request());
    const error = thrown(() => guard(request()));
    expect([error.status, error.headers['retry-after']]).toEqual([429, '50']);
    void guard(request('192.0.2.2'));
    nowMs = 60_000;
    void guard(request());
  });

  test('counts a /64 of IPv6 as one client, however its addresses are written', () => {
    const guard = registrationGuard({ ...open, perMinutePerIp: 2 }, () => 0);
    void guard(request('2001:db8:0:1::1'));
    void guard(request('2001:0db8:0:1:ffff:ffff:ffff:ffff'));
    expect(thrown(() => guard(request('2001:db8:0:1:2::'))).status).toBe(429);
    void guard(request('2001:db8:0:2::1'));
    void guard(request('::ffff:192.0.2.1'));
    void guard(request('192.0.2.1'));
    expect(thrown(() => guard(request('::ffff:c000:201'))).status).toBe(429);
  });

  describe('over replicas', () => {
    const limited = { ...open, perMinutePerIp: 2, perMinute: 5 };

    test('asks the store with both limits, and refuses for as long as it says', async () => {
      const asked: unknown[] = [];
      const guard = registrationGuard(
        limited,
        () => 0,
        undefined,
        async (limits) => (asked.push(limits) === 1 ? 0 : 1_500),
      );
      await guard(request('2001:db8::1'));
      expect(asked).toEqual([
        [
          { name: '2001:db8:0:0::/64', limit: 2 },
          { name: 'all', limit: 5 },
        ],
      ]);
      await expect(guard(request('2001:db8::1'))).rejects.toMatchObject({
        status: 429,
        headers: { 'retry-after': '2' },
      });
    });

    test('each counts for itself while the store does not say', async () => {
      const guard = registrationGuard(
        limited,
        () => 0,
        undefined,
        async () => null,
      );
      await guard(request());
      await guard(request());
      expect(thrown(() => guard(request())).status).toBe(429);
    });

    test('a flood that this one refuses does not reach the store', () => {
      let asked = 0;
      const guard = registrationGuard(
        limited,
        () => 0,
        undefined,
        async () => {
          asked += 1;
          return 0;
        },
      );
      for (let index = 0; index < 2; index += 1) void guard(request());
      for (let index = 0; index < 100; index += 1) expect(thrown(() => guard(request())).status).toBe(429);
      expect(asked).toBe(2);
    });

    test('nothing is asked where nothing is limited', () => {
      const guard = registrationGuard(
        open,
        () => 0,
        undefined,
        () => {
          throw new Error('asked');
        },
      );
      expect(guard(request())).toBeUndefined();
    });
  });

  test('is limited for everybody together', () => {
    const guard = registrationGuard({ ...open, perMinute: 3 }, () => 0);
    for (const ip of ['a', 'b', 'c']) void guard(request(ip));
    expect(thrown(() => guard(request('d'))).status).toBe(429);
  });
});

describe('the former name', () => {
  const tables = testTables({ legacy: { name: 'oldname', sunset: '2026-07-23T00:00:00Z' } });
  const clockAt = (instant: string): Clock => ({
    wallMs: () => Date.parse(instant),
    monotonicMs: () => 0,
    stampMicros: () => 0,
  });

  test('is accepted until the last millisecond of 2026-07-22', () => {
    expect(activeLegacyName(tables, clockAt('2026-07-22T23:59:59.999Z'))).toBe('oldname');
    expect(activeLegacyName(tables, clockAt('2026-07-23T00:00:00.000Z'))).toBeNull();
  });

  test('is never accepted where there is none', () => {
    expect(activeLegacyName(testTables(), clockAt('2026-01-01T00:00:00Z'))).toBeNull();
  });

  test('is answered with the dates of its end', () => {
    const headers: Record<string, string> = {};
    const reply = { header: (name: string, value: string) => (headers[name] = value) };
    markLegacy(reply as unknown as FastifyReply, tables);
    expect(headers).toEqual({ deprecation: '@1776902400', sunset: 'Thu, 23 Jul 2026 00:00:00 GMT' });
  });
});
