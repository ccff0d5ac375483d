import { LRUCache } from 'lru-cache';
import type { CacheKeyParts } from '../core/request/cache-key.ts';
import { askedBeside, cachedFor, cacheKey } from '../core/request/cache-key.ts';

/** Those used last: 9 MiB at the most, with the longest bodies in two bytes a character. */
const maxKnown = 1024;
/** In characters. Of longer bodies the key is made each time. */
export const longestKnownBody = 4096;
/** Characters of each of the three places that a body is found by. */
const sampledLength = 24;

interface KnownKey {
  readonly body: string;
  readonly key: string;
}

/**
 * Cache keys of bodies that were sent before, to the letter: to put one into one order and to hash it takes 3.5 µs, a
 * twentieth of a hit. What a body means depends on the tables, so they are part of what is asked. A body is found by
 * some of its characters, since a map would hash all of them for 1.5 µs, and then compared: of those that agree in
 * these the last one is known.
 */
export class KnownCacheKeys {
  readonly #keys = new LRUCache<string, KnownKey>({ max: maxKnown });

  /** `body`: as it was sent, `longestKnownBody` at the most. */
  keyOf(parts: CacheKeyParts, tables: string, body: string): string {
    const place = `${tables}\n${askedBeside(parts)}\n${sampleOf(body)}`;
    const known = this.#keys.get(place);
    if (known !== undefined && known.body === body) return known.key;
    const key = cacheKey(cachedFor(parts));
    this.#keys.set(place, { body, key });
    return key;
  }
}

/** Its length, and characters at its beginning, in its middle and at its end. */
function sampleOf(body: string): string {
  const { length } = body;
  const middle = length >> 1;
  return (
    length +
    body.slice(0, sampledLength) +
    body.slice(middle, middle + sampledLength) +
    body.slice(-sampledLength)
  );
}
