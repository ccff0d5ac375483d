import type { BreakerState } from '../../core/breaker-state.ts';

/** In a row: fewer may be a stall of our own event loop. */
const failuresToOpen = 5;
/** How long nothing is tried; then one call at a time is, until one succeeds. */
const pauseMs = 1000;

/** Spares callers the wait for a server that does not answer. Times are monotonic milliseconds. */
export class CircuitBreaker {
  #state: BreakerState = 'closed';
  #failures = 0;
  #retryAtMs = 0;

  get state(): BreakerState {
    return this.#state;
  }

  /** Whether to try. A caller that was let through must report `succeeded` or `failed`. */
  allows(nowMs: number): boolean {
    if (this.#state === 'closed') return true;
    if (this.#state === 'half_open' || nowMs < this.#retryAtMs) return false;
    this.#state = 'half_open';
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#state = 'closed';
  }

  failed(nowMs: number): void {
    this.#failures += 1;
    if (this.#failures < failuresToOpen) return;
    this.#state = 'open';
    this.#retryAtMs = nowMs + pauseMs;
  }
}
