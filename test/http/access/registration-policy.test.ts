import type { FastifyRequest } from 'fastify';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../../src/core/secret/secret.ts';
import type { RegistrationPolicy } from '../../../src/http/access/registration-policy.ts';
import { registrationGuard } from '../../../src/http/access/registration-policy.ts';
import { thrown } from '../thrown.ts';

describe('registration', () => {
  const open: RegistrationPolicy = { mode: 'open', token: null, perMinute: 0, perMinutePerIp: 0 };
  const request = (ip = '192.0.2.1', authorization?: string, ...rawHeaders: string[]): FastifyRequest =>
    ({ ip, headers: { authorization }, raw: { rawHeaders } }) as unknown as FastifyRequest;

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

  test('by token refuses the token where another line of the header says something else', () => {
    const token = new Secret('the-registration-token');
    const guard = registrationGuard({ ...open, mode: 'token', token }, () => 0);
    const [right, other] = ['Bearer the-registration-token', 'Bearer another'];
    const both = request('::1', right, 'Authorization', right, 'authorization', other);
    expect(thrown(() => guard(both)).status).toBe(401);
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
      expect(thrown(() => guard(request('8.8.8.8', `Bearer wrong-${count}`))).status).toBe(401);
    nowMs = 20_000;
    for (const sent of ['Bearer wrong', 'Bearer the-registration-token', undefined])
      expect(thrown(() => guard(request('8.8.8.8', sent)))).toMatchObject({
        status: 429,
        code: 'too_many_wrong_tokens',
        headers: { 'retry-after': '40' },
      });
    expect(told).toBe(33);
    void guard(request('8.8.4.4', 'Bearer the-registration-token'));
    nowMs = 60_000;
    void guard(request('8.8.8.8', 'Bearer the-registration-token'));
  });

  test.each(['127.0.0.1', '10.0.0.7', '172.17.0.1', 'fd00::1'])(
    'by token takes the token from %s, where strangers may have guessed',
    (address) => {
      const token = new Secret('the-registration-token');
      const guard = registrationGuard({ ...open, mode: 'token', token }, () => 0);
      const statuses = Array.from(
        { length: 12 },
        () => thrown(() => guard(request(address, 'Bearer wrong'))).status,
      );
      expect(statuses).toEqual([...Array(10).fill(401), 429, 429]);
      void guard(request(address, 'Bearer the-registration-token'));
      expect(thrown(() => guard(request(address, 'Bearer wrong'))).status).toBe(429);
    },
  );

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
