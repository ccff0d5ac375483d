import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { KnownCacheKeys } from '../../src/chat/known-cache-keys.ts';
import type { CacheKeyParts } from '../../src/core/request/cache-key.ts';
import { cachedFor, cacheKey } from '../../src/core/request/cache-key.ts';
import type { ChatRequest } from '../../src/core/request/chat-request.ts';
import { noOptions } from './story.ts';

/** They differ in one character, far from the ends and the middle. */
const longBody = (letter: string): string => `{"model":"${'a'.repeat(60)}${letter}${'b'.repeat(200)}"}`;

/** Requests of few different parts, so that many are equal but for one of them. */
const asked = fc.record({
  userId: fc.constantFrom('u', 'u2'),
  residency: fc.constantFrom(null, 'india' as const),
  mode: fc.constantFrom('gw/cheap', 'override'),
  target: fc.constantFrom('cheap', 'openai:m@k', 'openai:m@k2'),
  tables: fc.constantFrom('t', 't2'),
  body: fc.constantFrom(
    '{"model":"a"}',
    '{"model":"a" }',
    '{"user":"b","model":"a"}',
    longBody('x'),
    longBody('y'),
  ),
});

type Asked = typeof asked extends fc.Arbitrary<infer One> ? One : never;

/** Of these tables the second lets no `user` through. */
function partsOf({ residency, tables, body, ...rest }: Asked): CacheKeyParts {
  const { user, ...others } = JSON.parse(body) as ChatRequest;
  const request = (tables === 't' && user !== undefined ? { ...others, user } : others) as ChatRequest;
  return { ...rest, options: { ...noOptions, residency }, request };
}

describe('keys of bodies that are known', () => {
  test('are the ones that would be made', () => {
    fc.assert(
      fc.property(fc.array(asked, { minLength: 20, maxLength: 40 }), (requests) => {
        const known = new KnownCacheKeys();
        for (const one of requests) {
          const parts = partsOf(one);
          expect(known.keyOf(parts, one.tables, one.body)).toBe(cacheKey(cachedFor(parts)));
        }
      }),
    );
  });

  test('are not made again, of those that were sent last', () => {
    const known = new KnownCacheKeys();
    let read = 0;
    const request = new Proxy({} as ChatRequest, {
      ownKeys: () => {
        read += 1;
        return [];
      },
    });
    const parts: CacheKeyParts = { userId: 'u', options: noOptions, mode: 'm', target: 't', request };
    const readFor = (body: string): number => {
      read = 0;
      known.keyOf(parts, 't', body);
      return read;
    };
    expect([readFor('a'), readFor('a'), readFor('b'), readFor('a')]).toEqual([1, 0, 1, 0]);
    for (let other = 0; other < 2_000; other += 1) readFor(String(other));
    expect(readFor('a')).toBe(1);
  });
});
