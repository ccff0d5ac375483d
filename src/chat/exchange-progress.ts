import type { DueEntry, DueList } from './due-list.ts';
import type { ExchangeState, ExchangeTimes } from './exchange-state.ts';
import { dueMs, movedTo } from './exchange-state.ts';
import type { ExchangeJob } from './open-stream.ts';

/** The state of one exchange, the times that go with it, and the one due time that moves with both. */
export class ExchangeProgress implements DueEntry {
  place = -1;
  dueMs = Number.POSITIVE_INFINITY;
  readonly #monotonicMs: () => number;
  readonly #dues: DueList;
  readonly #onOverdue: (nowMs: number) => void;
  readonly #times: ExchangeTimes;
  #state: ExchangeState = 'connecting';
  #stalledMs = 0;

  /** `onOverdue`: the time of the present state is up. */
  constructor(
    { attemptDueMs, requestDueMs, call, monotonicMs, dues }: ExchangeJob,
    onOverdue: (nowMs: number) => void,
  ) {
    this.#monotonicMs = monotonicMs;
    this.#dues = dues;
    this.#onOverdue = onOverdue;
    this.#times = {
      attemptDueMs,
      requestDueMs,
      idleMs: call.tables.document.timeouts.stream_idle_seconds * 1000,
      answeredAtMs: 0,
      lastActivityMs: 0,
      pausedAtMs: null,
    };
  }

  get state(): ExchangeState {
    return this.#state;
  }

  /** The first token was there, and the end was not. */
  get isOpen(): boolean {
    return this.#state === 'streaming' || this.#state === 'usage-only';
  }

  /** The end was there: what else comes is for nobody. */
  get isOver(): boolean {
    return this.#state === 'closed' || this.#state === 'lingering';
  }

  /** Nobody takes what comes: the client does not keep up, or has left. */
  get isUnread(): boolean {
    return this.#times.pausedAtMs !== null || this.#state === 'usage-only';
  }

  /** When bytes came last, or the client took them again; monotonic milliseconds. */
  get lastActivityMs(): number {
    return this.#times.lastActivityMs;
  }

  /** How long the client has not kept up, in all. */
  get stalledMs(): number {
    const { pausedAtMs } = this.#times;
    return this.#stalledMs + (pausedAtMs === null ? 0 : this.#monotonicMs() - pausedAtMs);
  }

  /** Begins to wait for the head. */
  start(): void {
    this.#wait();
  }

  /** Throws for a move that the states do not know. */
  to(next: ExchangeState): void {
    this.#state = movedTo(next, this.#state);
    if (next === 'usage-only' || next === 'lingering') this.#times.answeredAtMs = this.#monotonicMs();
    if (next === 'closed') this.#dues.leave(this);
    else this.#wait();
  }

  /** Bytes are there; for how long there were none, in milliseconds. */
  bytesCame(): number {
    const nowMs = this.#monotonicMs();
    const silentMs = nowMs - this.#times.lastActivityMs;
    this.#times.lastActivityMs = nowMs;
    return silentMs;
  }

  /** False: there is nothing to hold back, or it is held back already. */
  pause(): boolean {
    if (!this.isOpen || this.#times.pausedAtMs !== null) return false;
    this.#times.pausedAtMs = this.#monotonicMs();
    this.#wait();
    return true;
  }

  /** False: nothing was held back. */
  resume(): boolean {
    const { pausedAtMs } = this.#times;
    if (pausedAtMs === null) return false;
    const nowMs = this.#monotonicMs();
    this.#times.pausedAtMs = null;
    this.#times.lastActivityMs = nowMs;
    this.#stalledMs += nowMs - pausedAtMs;
    if (this.isOpen) this.#wait();
    return true;
  }

  onDue(nowMs: number): void {
    // Bytes do not touch the due time: only when it is there the time of the last ones is looked at.
    if (nowMs < dueMs(this.#state, this.#times)) this.#wait();
    else this.#onOverdue(nowMs);
  }

  #wait(): void {
    this.dueMs = dueMs(this.#state, this.#times);
    this.#dues.wait(this);
  }
}
