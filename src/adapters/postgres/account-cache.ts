import { LRUCache } from 'lru-cache';
import type { LoadedAccount } from './account-query.ts';
import { accountBytes } from './account-query.ts';

/** A user with a dozen keys takes less; a hundred keys of users' servers take 96 KB. */
const mostOfSmall = 16 * 1024;

/** Each half of the cache: how many accounts, and what they may take of the memory together. */
const half = { max: 20_000, maxSize: 16 * 1024 * 1024, sizeCalculation: accountBytes };
/**
 * Whatever a user may register fits (`maxKeyBytesPerUser`). Larger accounts, of before that limit, are read each time,
 * so that few cannot evict all others.
 */
const maxAccountBytes = half.maxSize / 64;

/**
 * Accounts by the hash of their service keys, those used last. Large ones have a half of their own: whoever makes
 * sixteen accounts with all the keys that they may have, and twenty service keys for each, evicts nobody but his like.
 */
export class AccountCache {
  readonly #small: LRUCache<string, LoadedAccount>;
  readonly #large: LRUCache<string, LoadedAccount>;

  constructor(onForgotten: (account: LoadedAccount, keyHash: string) => void) {
    const settings = { ...half, dispose: onForgotten, noDisposeOnSet: true };
    this.#small = new LRUCache(settings);
    this.#large = new LRUCache({ ...settings, maxEntrySize: maxAccountBytes });
  }

  get size(): number {
    return this.#small.size + this.#large.size;
  }

  get(keyHash: string): LoadedAccount | undefined {
    return this.#small.get(keyHash) ?? this.#large.get(keyHash);
  }

  /** Without counting as its use. */
  peek(keyHash: string): LoadedAccount | undefined {
    return this.#small.peek(keyHash) ?? this.#large.peek(keyHash);
  }

  has(keyHash: string): boolean {
    return this.#small.has(keyHash) || this.#large.has(keyHash);
  }

  /** False where it is too large to be kept. */
  set(keyHash: string, account: LoadedAccount): boolean {
    const isSmall = accountBytes(account) <= mostOfSmall;
    (isSmall ? this.#large : this.#small).delete(keyHash);
    (isSmall ? this.#small : this.#large).set(keyHash, account);
    return this.has(keyHash);
  }

  delete(keyHash: string): void {
    this.#small.delete(keyHash);
    this.#large.delete(keyHash);
  }
}
