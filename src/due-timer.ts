/**
 * The one timer of something that waits alone: for an equal request, for a vendor's word on a key, for the client of a
 * whole answer that goes out as a stream, for Postgres. Exchanges share theirs (`chat/due-list.ts`).
 *
 * Moving the due time later costs an assignment: when the timer fires early it goes back to sleep. Moving it earlier
 * re-arms it.
 */
export class DueTimer {
  readonly #monotonicMs: () => number;
  readonly #onDue: () => void;
  #timer: NodeJS.Timeout | null = null;
  #dueMs = Number.POSITIVE_INFINITY;
  #firesAtMs = Number.POSITIVE_INFINITY;

  /** `monotonicMs` must be the clock that due times are given in. */
  constructor(monotonicMs: () => number, onDue: () => void) {
    this.#monotonicMs = monotonicMs;
    this.#onDue = onDue;
  }

  setDue(dueMs: number): void {
    this.#dueMs = dueMs;
    if (this.#timer === null || dueMs < this.#firesAtMs) this.#arm();
  }

  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #arm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    const waitMs = Math.max(1, Math.ceil(this.#dueMs - this.#monotonicMs()));
    this.#firesAtMs = this.#dueMs;
    this.#timer = setTimeout(this.#fire, waitMs);
  }

  readonly #fire = (): void => {
    this.#timer = null;
    if (this.#monotonicMs() < this.#dueMs) this.#arm();
    else this.#onDue();
  };
}
