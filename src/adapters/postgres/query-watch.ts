/**
 * Finds the query that its server does not answer, with one timer a connection. `pg` would make one a query, whose
 * closures keep each other and the query's values alive through every scavenge: 64 KiB of every sixteen requests stayed
 * until a full collection, which was due every 17,000 requests and threw optimized code away.
 */
export class QueryWatch {
  readonly #patienceMs: number;
  readonly #onSilence: () => void;
  #timer: NodeJS.Timeout | null = null;
  /** Sent and not answered; the server answers them one by one. */
  #unanswered = 0;
  #dueMs = 0;
  #wakesAtMs = 0;

  /** `onSilence` is called once for each query that took longer than it may. */
  constructor(patienceMs: number, onSilence: () => void) {
    this.#patienceMs = patienceMs;
    this.#onSilence = onSilence;
  }

  /** `patienceMs` of a query that may take longer than others. */
  sent(patienceMs = this.#patienceMs): void {
    this.#unanswered += 1;
    this.#expect(patienceMs);
  }

  answered(): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1);
    if (this.#unanswered > 0) this.#expect(this.#patienceMs);
  }

  close(): void {
    this.#unanswered = 0;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #expect(patienceMs: number): void {
    this.#dueMs = performance.now() + patienceMs;
    if (this.#timer === null || this.#dueMs < this.#wakesAtMs) this.#sleep(patienceMs);
  }

  #sleep(ms: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#wakesAtMs = this.#dueMs;
    // What waits for an answer holds the process by its socket.
    this.#timer = setTimeout(this.#look, Math.ceil(ms)).unref();
  }

  readonly #look = (): void => {
    this.#timer = null;
    if (this.#unanswered === 0) return;
    const leftMs = this.#dueMs - performance.now();
    if (leftMs > 0) {
      this.#sleep(leftMs);
      return;
    }
    this.#unanswered = 0;
    this.#onSilence();
  };
}
