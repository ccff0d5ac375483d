import type { ResponseCache } from '../../chat/ports.ts';

/** Format of what is stored: change it when the plain value changes its meaning. */
const formatVersion = 1;

export type SealValue = (plain: Buffer, aad: string) => Buffer;
/** Null when the value was not sealed for this `aad` by a live key. */
export type OpenValue = (sealed: Buffer, aad: string) => Buffer | null;

/**
 * Seals what a shared store holds. A value is bound to its key, so one that was moved to another key (another
 * user's), changed, or sealed by a key that is gone is a miss.
 */
export class SealedResponseCache implements ResponseCache {
  readonly #store: ResponseCache;
  readonly #seal: SealValue;
  readonly #open: OpenValue;

  constructor(store: ResponseCache, seal: SealValue, open: OpenValue) {
    this.#store = store;
    this.#seal = seal;
    this.#open = open;
  }

  async get(key: string): Promise<Buffer | null> {
    const stored = await this.#store.get(key);
    if (stored === null || stored[0] !== formatVersion) return null;
    return this.#open(stored.subarray(1), key);
  }

  async set(key: string, value: Buffer, ttlSeconds: number, owner: string): Promise<void> {
    const sealed = Buffer.concat([Buffer.of(formatVersion), this.#seal(value, key)]);
    await this.#store.set(key, sealed, ttlSeconds, owner);
  }
}
