import { describe, expect, test } from 'vitest';
import { AccountCache } from '../../../src/adapters/postgres/account-cache.ts';
import type { LoadedAccount } from '../../../src/adapters/postgres/account-query.ts';

/** With one key of so many bytes. */
function accountOf(userId: string, keyBytes: number): LoadedAccount {
  const key = { id: 'k', baseUrl: null, label: null, declaredRegion: null };
  return {
    userId,
    keys: [{ ...key, sealed: { ciphertext: Buffer.alloc(keyBytes) } }],
  } as unknown as LoadedAccount;
}

const large = 96 * 1024;

describe('accounts that are remembered', () => {
  test('are not evicted by however many large ones', () => {
    const forgotten: string[] = [];
    const cache = new AccountCache((_account, keyHash) => void forgotten.push(keyHash));
    const usual = accountOf('usual', 200);
    cache.set('usual', usual);
    for (let index = 0; index < 1_000; index += 1) cache.set(`large ${index}`, accountOf('hog', large));
    expect(cache.get('usual')).toBe(usual);
    expect(cache.get('large 999')).toBeDefined();
    expect(cache.get('large 0')).toBeUndefined();
    expect(forgotten).not.toContain('usual');
    expect(forgotten).toHaveLength(1_001 - cache.size);
  });

  test.each([
    ['grew', 200, large],
    ['shrank', large, 200],
  ])('are there once when they %s', (_what, before, after) => {
    const cache = new AccountCache(() => undefined);
    cache.set('a', accountOf('u', before));
    const newest = accountOf('u', after);
    cache.set('a', newest);
    expect(cache.size).toBe(1);
    expect([cache.get('a'), cache.peek('a'), cache.has('a')]).toEqual([newest, newest, true]);
    cache.delete('a');
    expect([cache.size, cache.get('a'), cache.has('a')]).toEqual([0, undefined, false]);
  });

  test('are none that could evict all others', () => {
    const cache = new AccountCache(() => undefined);
    expect(cache.set('a', accountOf('u', 1024 * 1024))).toBe(false);
    expect(cache.get('a')).toBeUndefined();
  });
});
