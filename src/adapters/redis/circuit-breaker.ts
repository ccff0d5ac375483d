/** In a row: fewer may be a stall of our own event loop. */
const failuresToOpen = 5;
/** How long nothing is tried; then one call at a time is, until one succeeds. */
const pauseMs = 1000;

/** Spares callers the wait for a server that does not answer. Times are monotonic milliseconds. */
export class CircuitBreaker {
  #failures = 0;
  #retryAtMs = 0;
  #probing = false;

  get open(): boolean {
    return this.#failures >= failuresToOpen;
  }

  /** Whether to try. A caller that was let through must report `succeeded` or `failed`. */
  allows(nowMs: number): boolean {
    if (!this.open) return true;
    if (this.#probing || nowMs < this.#retryAtMs) return false;
    this.#probing = true;
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#probing = false;
  }

  failed(nowMs: number): void {
    this.#failures += 1;
    this.#probing = false;
    if (this.open) this.#retryAtMs = nowMs + pauseMs;
  }
}
