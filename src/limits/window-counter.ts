import { LRUCache } from 'lru-cache';

/** Limits of the edge are per minute. */
export const countedWindowMs = 60_000;
/** Names remembered within one window; beyond it the least recently used begin anew. */
const maxNames = 100_000;

/** Counts per window of one minute, on this replica. */
export class WindowCounter {
  readonly #limit: number;
  readonly #counts = new LRUCache<string, number>({ max: maxNames });
  #windowEndsAtMs = 0;

  /** `limit`: calls of one name per window; 0: no limit. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Seconds to wait, or 0 when the call is within the limit. */
  take(name: string, nowMs: number): number {
    if (this.#limit === 0) return 0;
    this.#beginWindow(nowMs);
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    return count <= this.#limit ? 0 : this.#secondsLeft(nowMs);
  }

  /** Seconds until a call could be within the limit, 0 when the next one is; counts nothing. */
  waitFor(name: string, nowMs: number): number {
    if (this.#limit === 0) return 0;
    this.#beginWindow(nowMs);
    return (this.#counts.get(name) ?? 0) < this.#limit ? 0 : this.#secondsLeft(nowMs);
  }

  #beginWindow(nowMs: number): void {
    if (nowMs < this.#windowEndsAtMs) return;
    this.#counts.clear();
    this.#windowEndsAtMs = nowMs + countedWindowMs;
  }

  #secondsLeft(nowMs: number): number {
    return Math.ceil((this.#windowEndsAtMs - nowMs) / 1000);
  }
}
