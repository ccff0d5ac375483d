import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AttemptReport } from '../../src/core/errors.ts';
import { finalError } from '../../src/core/final-error.ts';
import type { AttemptFailure, FailureKind } from '../../src/core/outcome.ts';

function failure(kind: FailureKind, retryAfterMs: number | null = null): AttemptFailure {
  return {
    kind,
    status: null,
    reason: kind,
    vendorCode: null,
    retryAfterMs,
    reply: null,
    blamesCandidate: true,
    blamesProvider: false,
  };
}

type Family = 'rate limit' | 'broken' | 'refused' | 'rejected' | 'unreadable key' | 'unexpected' | 'no room';

/** Which kinds are of one family: a mix within it answers as if all were the same. */
const families: Readonly<Record<Family, readonly FailureKind[]>> = {
  'rate limit': ['rate-limited'],
  broken: ['upstream-failed', 'timed-out', 'unreachable', 'unreadable', 'incomplete'],
  refused: ['refused'],
  rejected: ['key-rejected', 'not-found'],
  'unreadable key': ['key-unreadable'],
  unexpected: ['unexpected-status'],
  'no room': ['no-room'],
};

/** What an exhausted tier answers when all failures are of one family (SPEC 7). */
const answers: Readonly<Record<Family, readonly [status: number, type: string, code: string]>> = {
  'rate limit': [429, 'rate_limit_error', 'upstream_rate_limited'],
  broken: [502, 'provider_error', 'upstream_failed'],
  refused: [422, 'invalid_request_error', 'upstream_rejected'],
  rejected: [503, 'service_unavailable_error', 'upstream_key_rejected'],
  'unreadable key': [503, 'service_unavailable_error', 'stored_key_unreadable'],
  unexpected: [503, 'service_unavailable_error', 'upstream_unexpected_status'],
  'no room': [503, 'service_unavailable_error', 'no_room'],
};
const mixed = [503, 'service_unavailable_error', 'upstream_mixed'] as const;

const familyNames = Object.keys(families) as Family[];
const kinds = Object.values(families).flat();
const familyOf = (kind: FailureKind): Family =>
  familyNames.find((name) => families[name].includes(kind)) as Family;

/** Every non-empty set of failure kinds. */
const mixes = Array.from({ length: 2 ** kinds.length - 1 }, (_, index) =>
  kinds.filter((_kind, bit) => ((index + 1) >> bit) & 1),
);

const rows = mixes.map((mix) => {
  const seen = new Set(mix.map(familyOf));
  const [status, type, code] = seen.size === 1 ? answers[familyOf(mix[0] as FailureKind)] : mixed;
  return { mix: mix.join(' + '), kinds: mix, status, type, code };
});

describe('an exhausted tier', () => {
  test.each(rows)('answers $status $code after $mix', ({ kinds: mix, status, type, code }) => {
    for (const order of [mix, mix.toReversed(), [...mix, ...mix]]) {
      const error = finalError(
        order.map((kind) => failure(kind)),
        [],
      );
      expect([error.status, error.type, error.code, error.param]).toEqual([status, type, code, null]);
    }
  });

  test('answers 500 only when no candidate failed for any other reason than us', () => {
    expect(finalError([failure('internal-error')], []).code).toBe('internal_error');
    const mix = finalError([failure('internal-error'), failure('upstream-failed')], []);
    expect([mix.status, mix.code]).toEqual([503, 'upstream_mixed']);
  });

  test('says when to come again where there was no room', () => {
    expect(finalError([failure('no-room')], []).headers).toEqual({ 'retry-after': '1' });
  });

  test('shows every attempt', () => {
    const attempts: AttemptReport[] = [
      { provider: 'p', model: 'm', status: 500, reason: 'r', latency_ms: 3 },
    ];
    for (const kind of kinds) expect(finalError([failure(kind)], attempts).attempts).toBe(attempts);
  });
});

describe('Retry-After of an exhausted tier', () => {
  test.each([
    ['nobody gave one', [null, null], undefined],
    ['the least of all', [30_000, 7000, null], '7'],
    ['rounded up to whole seconds', [1001], '2'],
    ['none at all to wait', [0], '0'],
    ['none at all to wait for one of them', [30_000, 0], '0'],
    ['less than a second is one', [1], '1'],
    ['exactly a minute is worth waiting for', [60_000], '60'],
  ])('%s', (_name, waits, expected) => {
    const error = finalError(
      waits.map((wait) => failure('rate-limited', wait)),
      [],
    );
    expect(error.headers['retry-after']).toBe(expected);
    expect(error.headers['x-should-retry']).toBeUndefined();
  });

  test('tells clients not to wait by themselves for more than a minute', () => {
    const error = finalError([failure('rate-limited', 60_001)], []);
    expect(error.headers).toEqual({ 'retry-after': '61', 'x-should-retry': 'false' });
  });

  test('is never sent unless all were rate limited, or found no room', () => {
    const others = kinds.filter((kind) => kind !== 'no-room');
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...others), { minLength: 1, maxLength: 16 }), (mix) => {
        const error = finalError(
          mix.map((kind) => failure(kind, 5000)),
          [],
        );
        expect(error.headers['retry-after']).toBe(error.status === 429 ? '5' : undefined);
      }),
    );
  });

  test.each<[mix: readonly FailureKind[], hint: string | undefined]>([
    [['key-rejected', 'not-found'], 'false'],
    [['key-unreadable'], 'false'],
    [['key-unreadable', 'key-rejected'], 'false'],
    [['not-found', 'key-unreadable'], 'false'],
    [['key-unreadable', 'timed-out'], undefined],
    [['key-rejected', 'rate-limited'], undefined],
  ])('after %j hints at whether to repeat it: %s', (mix, hint) => {
    const error = finalError(
      mix.map((kind) => failure(kind)),
      [],
    );
    expect(error.headers['x-should-retry']).toBe(hint);
  });

  const refusedAddress = { ...failure('unreachable'), unusableAddress: 'refused' } as const;
  const unreadableAddress = { ...failure('unreachable'), unusableAddress: 'unreadable' } as const;

  test.each<[name: string, mix: readonly AttemptFailure[], status: number, code: string, hint?: string]>([
    ['one is refused', [refusedAddress], 502, 'address_refused', 'false'],
    ['all are refused', [refusedAddress, refusedAddress], 502, 'address_refused', 'false'],
    ['one cannot be read', [unreadableAddress], 502, 'address_unreadable', 'false'],
    ['some of both', [unreadableAddress, refusedAddress], 502, 'address_refused', 'false'],
    ['beside a timeout', [refusedAddress, failure('timed-out')], 502, 'upstream_failed'],
    ['beside a server that is away', [refusedAddress, failure('unreachable')], 502, 'upstream_failed'],
    ['beside a rejected key', [refusedAddress, failure('key-rejected')], 503, 'upstream_mixed', 'false'],
    [
      'beside a key that does not open',
      [refusedAddress, failure('key-unreadable')],
      503,
      'upstream_mixed',
      'false',
    ],
    ['beside a rate limit', [refusedAddress, failure('rate-limited', 1000)], 503, 'upstream_mixed'],
  ])('after addresses that cannot be used, %s', (_name, mix, status, code, hint) => {
    for (const order of [mix, mix.toReversed()]) {
      const error = finalError(order, []);
      expect([error.status, error.code, error.headers['x-should-retry']]).toEqual([status, code, hint]);
      expect(error.message.includes('No provider was asked')).toBe(code.startsWith('address_'));
    }
  });

  test('stored keys that cannot be read are laid to no vendor', () => {
    const { message } = finalError([failure('key-unreadable')], []);
    expect(message).not.toMatch(/reject|refus/);
    expect(message).toContain('No provider was asked');
  });
});
