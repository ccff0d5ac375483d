import { LRUCache } from 'lru-cache';
import type { ResponseCache } from '../chat/ports.ts';

/** What an entry costs beside its bytes: map slot, links, timestamps, Buffer object. */
const entryOverheadBytes = 256;

/** Answers in this process, for deployments without Redis: the least recently used go when it is full. */
export class MemoryResponseCache implements ResponseCache {
  readonly #entries: LRUCache<string, Buffer>;

  /** `maxBytes` bounds keys, values and overhead together; 0 stores nothing. `nowMs` is monotonic. */
  constructor(maxBytes: number, maxValueBytes: number, nowMs: () => number = () => performance.now()) {
    this.#entries = new LRUCache({
      maxSize: Math.max(maxBytes, 1),
      maxEntrySize: Math.max(Math.min(maxBytes, maxValueBytes + entryOverheadBytes), 1),
      sizeCalculation: (value, key) => value.length + key.length + entryOverheadBytes,
      perf: { now: nowMs },
      // The clock is read each time: a cached reading would keep entries beyond their time.
      ttlResolution: 0,
    });
  }

  async get(key: string): Promise<Buffer | null> {
    return this.#entries.get(key) ?? null;
  }

  async set(key: string, value: Buffer, ttlSeconds: number): Promise<void> {
    // Copied: a slice would keep the whole read buffer that it is part of.
    this.#entries.set(key, Buffer.from(value), { ttl: ttlSeconds * 1000 });
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#entries.calculatedSize;
  }
}
