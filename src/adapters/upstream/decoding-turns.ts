import { longestReadingMs } from './reading-turns.ts';

/**
 * Shares turns of the event loop between decoders: what they give out comes past `ReadingTurns`, which knows packed
 * bytes alone, and of many of them in one turn. Together they have as long as reading has; what is left waits for the
 * next turn, in order.
 */
export class DecodingTurns {
  readonly #waiting: (() => void)[] = [];
  readonly #monotonicMs: () => number;
  #spentMs = 0;
  #ends = false;

  constructor(monotonicMs: () => number = () => performance.now()) {
    this.#monotonicMs = monotonicMs;
  }

  /** Runs `step` now, or in a later turn: false. */
  run(step: () => void): boolean {
    const isNow = this.#waiting.length === 0 && this.#spentMs < longestReadingMs;
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
    return this.#spentMs < longestReadingMs ? this.#waiting.shift() : undefined;
  }
}
