import { LRUCache } from 'lru-cache';
import type { CacheOwner, ResponseCache } from '../../chat/ports.ts';
import { ownCopy } from '../../core/own-copy.ts';

/** What an entry costs beside its bytes: map slot, links, timestamps, Buffer object. */
const entryOverheadBytes = 256;

const largestDefaultBytes = 64 * 1024 * 1024;
/** It lies beside the heap, and takes half as much again: each of its Buffers has pages of its own. */
const heapShare = 1 / 8;

/** How large it is where nobody says it. */
export function memoryCacheWithin(heapBytes: number): number {
  return Math.floor(Math.min(largestDefaultBytes, heapBytes * heapShare));
}

interface Entry {
  readonly value: Buffer;
  readonly owner: string;
}

/** What one user holds. */
interface Share {
  bytes: number;
  /** The least recently used first. */
  readonly keys: Set<string>;
  /** The last of them: asked for again, it moves nothing. */
  newest: string;
}

/**
 * Answers in this process, for deployments without Redis. When it is full, whoever holds more than half of it gives way
 * first, so that no user can push out what the others hold; then the least recently used go.
 */
export class MemoryResponseCache implements ResponseCache {
  readonly #entries: LRUCache<string, Entry>;
  readonly #shares = new Map<string, Share>();
  readonly #maxBytes: number;
  readonly #maxEntryBytes: number;
  /** The one user who may hold more than half. */
  #largest = '';

  /** `maxBytes` bounds keys, values and overhead together; 0 stores nothing. `nowMs` is monotonic. */
  constructor(maxBytes: number, maxValueBytes: number, nowMs: () => number = () => performance.now()) {
    this.#maxBytes = Math.max(maxBytes, 1);
    this.#maxEntryBytes = Math.max(Math.min(maxBytes, maxValueBytes + entryOverheadBytes), 1);
    this.#entries = new LRUCache({
      maxSize: this.#maxBytes,
      maxEntrySize: this.#maxEntryBytes,
      sizeCalculation: ({ value }, key) => entryBytes(key, value),
      dispose: ({ value, owner }, key) => this.#take(owner, key, entryBytes(key, value)),
      perf: { now: nowMs },
      // The clock is read each time: a cached reading would keep entries beyond their time.
      ttlResolution: 0,
    });
  }

  get(key: string): Buffer | null {
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    const share = this.#shares.get(entry.owner);
    if (share !== undefined && share.newest !== key) append(share, key);
    return entry.value;
  }

  async set(key: string, value: Buffer, ttlSeconds: number, owner: CacheOwner): Promise<boolean> {
    const { userId } = owner;
    this.#entries.delete(key);
    const bytes = entryBytes(key, value);
    if (bytes > this.#maxEntryBytes) return false;
    this.#makeRoom(bytes, userId);
    this.#entries.set(key, { value: ownCopy(value), owner: userId }, { ttl: ttlSeconds * 1000 });
    this.#give(userId, key, bytes);
    return true;
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#entries.calculatedSize;
  }

  /** Users who hold anything. */
  get owners(): number {
    return this.#shares.size;
  }

  /** Takes from whoever holds more than half, `owner` with what is to come included, until it fits. */
  #makeRoom(bytes: number, owner: string): void {
    const half = this.#maxBytes / 2;
    while (this.#entries.calculatedSize + bytes > this.#maxBytes) {
      const largest = this.#shares.get(this.#largest);
      const own = this.#shares.get(owner);
      const isOwn = (largest?.bytes ?? 0) <= half;
      if (isOwn && (own?.bytes ?? 0) + bytes <= half) return;
      const oldest = (isOwn ? own : largest)?.keys.values().next().value;
      if (oldest === undefined) return;
      this.#entries.delete(oldest);
    }
  }

  #give(owner: string, key: string, bytes: number): void {
    const share = this.#shares.get(owner) ?? { bytes: 0, keys: new Set<string>(), newest: '' };
    this.#shares.set(owner, share);
    share.bytes += bytes;
    append(share, key);
    if (share.bytes > this.#maxBytes / 2) this.#largest = owner;
  }

  #take(owner: string, key: string, bytes: number): void {
    const share = this.#shares.get(owner);
    if (share === undefined) return;
    share.bytes -= bytes;
    share.keys.delete(key);
    if (share.keys.size === 0) this.#shares.delete(owner);
  }
}

/** To the end, wherever it was. */
function append(share: Share, key: string): void {
  share.keys.delete(key);
  share.keys.add(key);
  share.newest = key;
}

function entryBytes(key: string, value: Buffer): number {
  return value.length + key.length + entryOverheadBytes;
}
