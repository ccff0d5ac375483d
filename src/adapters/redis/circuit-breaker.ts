import type { BreakerState } from '../../core/breaker-state.ts';

/** In a row: fewer may be a stall of our own event loop. */
const failuresToOpen = 5;
/** How long nothing is tried; then one call at a time is, until one succeeds. */
const pauseMs = 1000;

/** When a call was let through: how many pauses there were before it. */
export type Era = number;

/**
 * Spares callers the wait for a server that does not answer. Times are monotonic milliseconds.
 *
 * *closed*, after too many failures in a row *open*, after the pause *half_open* with the call that is let through
 * then, and after that call *closed* or *open* again. A call that began before the last pause did says nothing of the
 * time after it: its end moves nothing.
 */
export class CircuitBreaker {
  #state: BreakerState = 'closed';
  #failures = 0;
  #retryAtMs = 0;
  #era: Era = 0;

  get state(): BreakerState {
    return this.#state;
  }

  /** Whether a call that began now would be let through. */
  mayBegin(nowMs: number): boolean {
    return this.#state === 'closed' || (this.#state === 'open' && nowMs >= this.#retryAtMs);
  }

  /** Null: not now. A call that was let through must report `succeeded` or `failed`. */
  begin(nowMs: number): Era | null {
    if (!this.mayBegin(nowMs)) return null;
    if (this.#state === 'open') this.#state = 'half_open';
    return this.#era;
  }

  /** The server answered, be it with a refusal: that comes fast, so it costs callers nothing to go on asking. */
  succeeded(era: Era): void {
    if (era === this.#era) this.close();
  }

  failed(era: Era, nowMs: number): void {
    if (era !== this.#era) return;
    this.#failures += 1;
    if (this.#failures < failuresToOpen) return;
    this.#state = 'open';
    this.#era += 1;
    this.#retryAtMs = nowMs + pauseMs;
  }

  /** The server is known to be there by something else than a call. */
  close(): void {
    this.#failures = 0;
    this.#state = 'closed';
  }
}
