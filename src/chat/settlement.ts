import type { Usage } from '../core/answer/usage.ts';
import { noUsage } from '../core/answer/usage.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import { modeLabel } from '../core/request/chat-call.ts';
import type { Residency } from '../core/request/residency.ts';
import type { RequestEnd, SettledRequest, Target } from '../core/settled-request.ts';
import { AttemptLedger } from './attempt-ledger.ts';
import type { ChatDeps } from './chat-deps.ts';

/** What a settlement says beside how the request ended. What is left out follows from the ledger. */
export interface SettledFacts {
  /** Whole milliseconds. */
  readonly latencyMs: number;
  readonly ttftMs?: number | null;
  readonly usage?: Usage;
  readonly costMicroUsd?: bigint;
  readonly savedMicroUsd?: bigint;
  /** Set on a cache hit: who had answered. */
  readonly cachedFrom?: Target;
}

/**
 * The end-of-request record, made exactly once. `settle` is awaited before the last byte leaves, so a
 * client that has its answer finds its row.
 */
export class Settlement {
  readonly ledger = new AttemptLedger();
  readonly #call: ChatCall;
  readonly #deps: Pick<ChatDeps, 'requestLog' | 'telemetry' | 'clock' | 'newId'>;
  #settled = false;
  #usage = noUsage;
  #costMicroUsd = 0n;

  constructor(call: ChatCall, deps: Pick<ChatDeps, 'requestLog' | 'telemetry' | 'clock' | 'newId'>) {
    this.#call = call;
    this.#deps = deps;
  }

  /** Whole milliseconds since the request came in. */
  latencyMs(): number {
    return Math.max(0, Math.round(this.#deps.clock.monotonicMs() - this.#call.enteredAtMs));
  }

  /** What an attempt without an answer had used up: the request's, unless its settlement says otherwise. */
  spent(usage: Usage, costMicroUsd: bigint): void {
    this.#usage = usage;
    this.#costMicroUsd = costMicroUsd;
  }

  /** The first call counts; later ones do nothing. Never rejects. */
  async settle(end: RequestEnd, facts: SettledFacts = { latencyMs: this.latencyMs() }): Promise<void> {
    if (this.#settled) return;
    const settled = this.#settledRequest(end, facts);
    this.#settled = true;
    const { telemetry, requestLog, clock } = this.#deps;
    const settledAtMs = clock.monotonicMs();
    const kept = requestLog.record(settled);
    telemetry.settled(this.#call, settled);
    await kept;
    telemetry.rowKept(clock.monotonicMs() - settledAtMs);
  }

  #settledRequest(end: RequestEnd, facts: SettledFacts): SettledRequest {
    const call = this.#call;
    const { last, served, records, tries } = this.ledger;
    const { cachedFrom = null } = facts;
    const unasked: Residency = call.options.residency ?? 'global';
    return {
      rowId: this.#deps.newId(),
      userId: call.userId,
      requestId: call.requestId,
      createdAtMicros: this.#deps.clock.stampMicros(),
      mode: modeLabel(call),
      end,
      target: last,
      cachedFrom,
      keyId: cachedFrom !== null ? null : (served?.key.id ?? null),
      usage: facts.usage ?? this.#usage,
      latencyMs: facts.latencyMs,
      ttftMs: facts.ttftMs ?? null,
      costMicroUsd: facts.costMicroUsd ?? this.#costMicroUsd,
      savedMicroUsd: facts.savedMicroUsd ?? 0n,
      stream: call.request.stream === true,
      residencyRequested: call.options.residency,
      residencyActual: cachedFrom !== null ? 'cache' : (last?.residency ?? unasked),
      candidates: records,
      tries,
      tablesVersion: call.tables.hash,
      traceId: call.trace?.traceId ?? null,
    };
  }
}
