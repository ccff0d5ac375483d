import { DueTimer } from '../../due-timer.ts';

/**
 * Finds the query that its server does not answer, with one timer a connection. `pg` would make one a query, whose
 * closures keep each other and the query's values alive through every scavenge: 64 KiB of every sixteen requests stayed
 * until a full collection, which was due every 17,000 requests and threw optimized code away.
 */
export class QueryWatch {
  readonly #patienceMs: number;
  readonly #timer: DueTimer;
  /** Sent and not answered; the server answers them one by one. */
  #unanswered = 0;

  /** `onSilence` is called once for each query that took longer than it may. */
  constructor(patienceMs: number, onSilence: () => void) {
    this.#patienceMs = patienceMs;
    this.#timer = new DueTimer(monotonicMs, () => {
      if (this.#unanswered === 0) return;
      this.#unanswered = 0;
      onSilence();
    });
  }

  /** `patienceMs` of a query that may take longer than others. */
  sent(patienceMs = this.#patienceMs): void {
    this.#unanswered += 1;
    this.#timer.setDue(monotonicMs() + patienceMs);
  }

  /** The timer sleeps on where nothing is waited for: the next query is sent sooner than it wakes. */
  answered(): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1);
    if (this.#unanswered > 0) this.#timer.setDue(monotonicMs() + this.#patienceMs);
  }

  close(): void {
    this.#unanswered = 0;
    this.#timer.clear();
  }
}

const monotonicMs = (): number => performance.now();
