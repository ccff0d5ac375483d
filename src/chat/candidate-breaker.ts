import type { BreakerState } from '../core/breaker-state.ts';
import type { RoutingTables } from '../core/tables/tables.ts';

export type BreakerRules = RoutingTables['document']['cooldown'];

/**
 * The circuit breaker of one provider key, or of a whole provider. *closed* while attempts succeed or failures are
 * few; *open* for a pause after too many in a row, or as long as the vendor asked for; *half_open* while a probe is
 * under way. When a pause is over it is closed again, but the next attempt is its probe: a failure opens it for twice
 * as long, a success is the end of it all (whoever holds the breaker forgets it). An attempt within a pause, the last
 * resort of its request, ends the pause when it succeeds and else changes nothing.
 *
 * An attempt is known by its start, in monotonic milliseconds as all times here. What began before a pause did says
 * nothing about the time after it, so it neither ends nor prolongs that pause.
 */
export class CandidateBreaker {
  #failures = 0;
  /** When the last pause began; 0: there was none. */
  #openedAtMs = 0;
  #openUntilMs = 0;
  #pauseMs = 0;
  /** When the probe began that is under way; null: there is none. */
  #probeAtMs: number | null = null;
  /** A probe that has not ended after this long is given up on: the next one may go. */
  #probePatienceMs = 0;
  /** The end of a pause that the vendor asked for (Retry-After). */
  #limitedUntilMs = 0;

  state(nowMs: number): BreakerState {
    const isPaused = nowMs < this.#limitedUntilMs || nowMs < this.#openUntilMs;
    if (!isPaused && !this.#isProbing(nowMs)) return 'closed';
    return this.#probeAtMs === null ? 'open' : 'half_open';
  }

  /** True while the vendor's own wait is not over: it outlives answers of attempts that began before. */
  isLimited(nowMs: number): boolean {
    return nowMs < this.#limitedUntilMs;
  }

  /** Whether an attempt began late enough to say something of the time after the last pause. */
  isJudgedBy(startedAtMs: number): boolean {
    return startedAtMs >= this.#openedAtMs;
  }

  /** An attempt begins: after a pause it is the probe, unless there is one. Within it, as a last resort, it is none. */
  begin(startedAtMs: number): void {
    const isAfterPause = this.#openUntilMs !== 0 && startedAtMs >= this.#openUntilMs;
    if (isAfterPause && !this.#isProbing(startedAtMs)) this.#probeAtMs = startedAtMs;
  }

  /** The attempt has ended, without a word on whether it succeeded: if it was the probe, the next one may go. */
  endProbe(startedAtMs: number): void {
    if (this.#probeAtMs === startedAtMs) this.#probeAtMs = null;
  }

  /** `mayOpen` false: the failure counts, but others would have to see it too. */
  recordFailure(rules: BreakerRules, startedAtMs: number, nowMs: number, mayOpen: boolean): void {
    this.#failures += 1;
    if (this.#failures < rules.failures || !mayOpen) return;
    if (nowMs < this.#openUntilMs || !this.isJudgedBy(startedAtMs)) return;
    const longestMs = rules.longest_seconds * 1000;
    this.#pauseMs = this.#pauseMs === 0 ? rules.first_seconds * 1000 : Math.min(this.#pauseMs * 2, longestMs);
    this.#openedAtMs = nowMs;
    this.#openUntilMs = nowMs + this.#pauseMs;
    this.#probePatienceMs = longestMs;
  }

  /** The vendor asked to be left alone until then. */
  limit(untilMs: number): void {
    this.#limitedUntilMs = Math.max(this.#limitedUntilMs, untilMs);
  }

  /** Forgets all failures and pauses, but not the time the vendor asked for. */
  close(): void {
    this.#failures = 0;
    this.#openedAtMs = 0;
    this.#openUntilMs = 0;
    this.#pauseMs = 0;
    this.#probeAtMs = null;
  }

  #isProbing(nowMs: number): boolean {
    return this.#probeAtMs !== null && nowMs < this.#probeAtMs + this.#probePatienceMs;
  }
}
