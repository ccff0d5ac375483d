import { costMicroUsd } from '../core/answer/cost.ts';
import { noUsage } from '../core/answer/usage.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { CacheResult, RequestEnd, SettledFacts } from '../core/settled-request.ts';
import { settledRequest } from '../core/settled-request.ts';
import { AttemptLedger } from './attempt-ledger.ts';
import type { ChatDeps } from './chat-deps.ts';

type SettlementDeps = Pick<ChatDeps, 'requestLog' | 'telemetry' | 'clock' | 'newId' | 'reportBug'>;

/**
 * The end-of-request record, made exactly once. `settle` is awaited before the last byte leaves, so a
 * client that has its answer finds its row.
 */
export class Settlement {
  readonly ledger = new AttemptLedger();
  /** Set by whoever looks. */
  cache: CacheResult = 'bypass';
  readonly #call: ChatCall;
  readonly #deps: SettlementDeps;
  #settled = false;
  #usage = noUsage;
  #costMicroUsd = 0n;

  constructor(call: ChatCall, deps: SettlementDeps) {
    this.#call = call;
    this.#deps = deps;
  }

  /** Whole milliseconds since the request came in. */
  latencyMs(): number {
    return Math.max(0, Math.round(this.#deps.clock.monotonicMs() - this.#call.enteredAtMs));
  }

  /**
   * Nobody has answered: the request's own is what the last attempt had used up of those whose vendors stated any,
   * which is then the target of its row.
   */
  spentInVain(): void {
    const billed = this.ledger.lastBilled();
    if (billed === null) return;
    const { candidate, usage } = billed;
    this.ledger.last = candidate;
    this.#usage = usage;
    this.#costMicroUsd = costMicroUsd(usage, candidate.price);
  }

  /** The first call counts; later ones do nothing. Never rejects. */
  settle(end: RequestEnd, facts: SettledFacts = { latencyMs: this.latencyMs() }): Promise<void> {
    if (this.#settled) return Promise.resolve();
    const { telemetry, requestLog, clock, newId } = this.#deps;
    const settled = settledRequest(this.#call, this.ledger, {
      end,
      cache: this.cache,
      facts: { usage: this.#usage, costMicroUsd: this.#costMicroUsd, ...facts },
      rowId: newId(),
      createdAtMicros: clock.stampMicros(),
    });
    this.#settled = true;
    const kept = requestLog.record(settled);
    try {
      telemetry.settled(this.#call, settled);
    } catch (cause) {
      // The row is on its way: what goes wrong in telling of it must not make another end of its request.
      this.#deps.reportBug(cause, this.#call);
    }
    return kept;
  }
}
