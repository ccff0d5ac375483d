import type { Placed } from '../core/placed-list.ts';
import { PlacedList } from '../core/placed-list.ts';

/** Whoever waits until a time. */
export interface DueEntry extends Placed {
  /** Monotonic milliseconds. */
  readonly dueMs: number;
  /** The time is up: it leaves, or waits for a later one. */
  onDue(nowMs: number): void;
}

/**
 * One timer for all who wait, set for the first of them: nearly all leave long before. One for each, made and cleared,
 * costs a request 0.5 µs and outlives a scavenge. Those whose time moves on need not say so, and it is not put off for
 * those who leave, which under load is for every few requests 1 µs: the timer finds out, and keeps no process alive.
 */
export class DueList {
  readonly #monotonicMs: () => number;
  readonly #waiting = new PlacedList<DueEntry>();
  #timer: NodeJS.Timeout | null = null;
  #firesAtMs = Number.POSITIVE_INFINITY;

  /** `monotonicMs` must be the clock that due times are given in. */
  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** How many wait: what tells of one that was left behind, since their one timer does not. */
  get length(): number {
    return this.#waiting.length;
  }

  /** It waits, or waits until another time than before. */
  wait(entry: DueEntry): void {
    if (entry.place < 0) this.#waiting.add(entry);
    if (entry.dueMs < this.#firesAtMs) this.#arm(entry.dueMs);
  }

  leave(entry: DueEntry): void {
    this.#waiting.remove(entry);
  }

  #arm(dueMs: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#firesAtMs = dueMs;
    this.#timer = setTimeout(this.#fire, Math.max(1, Math.ceil(dueMs - this.#monotonicMs())));
    this.#timer.unref();
  }

  readonly #fire = (): void => {
    this.#timer = null;
    // Until all were asked nobody sets it.
    this.#firesAtMs = Number.NEGATIVE_INFINITY;
    const nowMs = this.#monotonicMs();
    try {
      // Each may make others leave.
      const due = this.#waiting.entries.filter(({ dueMs }) => dueMs <= nowMs);
      for (const entry of due) if (entry.place >= 0) entry.onDue(nowMs);
    } finally {
      this.#firesAtMs = Number.POSITIVE_INFINITY;
      let first = Number.POSITIVE_INFINITY;
      for (const { dueMs } of this.#waiting.entries) first = Math.min(first, dueMs);
      if (this.#waiting.length > 0) this.#arm(first);
    }
  };
}
