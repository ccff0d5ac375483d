/**
 * Shares turns of the event loop between steps of which many may come in one: together they have so long in a turn, and
 * what is left waits for the next one, in order.
 */
export class TimedTurns {
  readonly #waiting: (() => void)[] = [];
  readonly #longestMs: number;
  readonly #monotonicMs: () => number;
  #spentMs = 0;
  #ends = false;

  constructor(longestMs: number, monotonicMs: () => number = () => performance.now()) {
    this.#longestMs = longestMs;
    this.#monotonicMs = monotonicMs;
  }

  /** Runs `step` now, or in a later turn: false. */
  run(step: () => void): boolean {
    const isNow = this.#waiting.length === 0 && this.#spentMs < this.#longestMs;
    if (isNow) this.#do(step);
    else this.#waiting.push(step);
    this.#endLater();
    return isNow;
  }

  #do(step: () => void): void {
    const beganMs = this.#monotonicMs();
    try {
      step();
    } finally {
      this.#spentMs += this.#monotonicMs() - beganMs;
    }
  }

  #endLater(): void {
    if (this.#ends) return;
    this.#ends = true;
    setImmediate(this.#next);
  }

  readonly #next = (): void => {
    this.#ends = false;
    this.#spentMs = 0;
    try {
      for (let step = this.#take(); step !== undefined; step = this.#take()) this.#do(step);
    } finally {
      if (this.#waiting.length > 0) this.#endLater();
    }
  };

  #take(): (() => void) | undefined {
    return this.#spentMs < this.#longestMs ? this.#waiting.shift() : undefined;
  }
}
