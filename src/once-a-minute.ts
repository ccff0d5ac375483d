const quietMs = 60_000;

/** What happens again and again is told of at once, then once a minute, and at once when it is something else. */
export class OnceAMinute {
  readonly #monotonicMs: () => number;
  #dueMs = Number.NEGATIVE_INFINITY;
  #told = '';

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Whether `what` is to be told now; who is told true tells. */
  isDue(what = ''): boolean {
    const nowMs = this.#monotonicMs();
    if (what === this.#told && nowMs < this.#dueMs) return false;
    this.#told = what;
    this.#dueMs = nowMs + quietMs;
    return true;
  }
}
