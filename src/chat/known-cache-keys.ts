import { LRUCache } from 'lru-cache';
import type { CacheKeyParts } from '../core/request/cache-key.ts';
import { askedBeside, cachedFor, cacheKey } from '../core/request/cache-key.ts';

/** Those used last: 9 MiB at the most, with the longest bodies in two bytes a character. */
const maxKnown = 1024;
/** In characters. Of longer bodies the key is made each time. */
export const longestKnownBody = 4096;

/**
 * Cache keys of bodies that were sent before, to the letter: to put one into one order and to hash it takes 3.5 µs, a
 * twentieth of a hit. What a body means depends on the tables, so they are part of what is asked.
 */
export class KnownCacheKeys {
  readonly #keys = new LRUCache<string, string>({ max: maxKnown });

  /** `body`: as it was sent, `longestKnownBody` at the most. */
  keyOf(parts: CacheKeyParts, tables: string, body: string): string {
    const asked = `${tables}\n${askedBeside(parts)}\n${body}`;
    const known = this.#keys.get(asked);
    if (known !== undefined) return known;
    const key = cacheKey(cachedFor(parts));
    this.#keys.set(asked, key);
    return key;
  }
}
