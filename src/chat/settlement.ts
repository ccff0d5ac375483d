import type { ChatCall } from '../core/chat-call.ts';
import { modeLabel } from '../core/chat-call.ts';
import type { LogRow, LogStatus } from '../core/log-row.ts';
import { redactReason } from '../core/redact.ts';
import type { Residency } from '../core/residency.ts';
import type { Usage } from '../core/usage.ts';
import { noUsage } from '../core/usage.ts';
import type { AttemptLedger } from './fallback.ts';
import type { Clock, RequestLog } from './ports.ts';
import type { ChatTelemetry } from './telemetry-port.ts';

export interface SettlementIo {
  readonly requestLog: RequestLog;
  readonly telemetry: ChatTelemetry;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** How a request ended, as far as its row is concerned. What is left out follows from the ledger. */
export interface RequestEnd {
  readonly status: LogStatus;
  /** `<type>: <message>`; null on success. */
  readonly error: string | null;
  readonly latencyMs: number;
  readonly ttftMs?: number | null;
  readonly usage?: Usage;
  readonly costMicroUsd?: bigint;
  readonly savedMicroUsd?: bigint;
  /** Set on a cache hit: the original `provider:model`. */
  readonly cachedFrom?: string;
}

/**
 * The end-of-request record, written exactly once. `settle` is awaited before the last byte leaves, so a
 * client that has its answer finds its row.
 */
export class Settlement {
  readonly ledger: AttemptLedger;
  readonly #call: ChatCall;
  readonly #io: SettlementIo;
  #settled = false;
  #usage = noUsage;
  #costMicroUsd = 0n;

  constructor(call: ChatCall, ledger: AttemptLedger, io: SettlementIo) {
    this.#call = call;
    this.ledger = ledger;
    this.#io = io;
  }

  /** Whole milliseconds since the request came in. */
  latencyMs(): number {
    return Math.max(0, Math.round(this.#io.clock.monotonicMs() - this.#call.enteredAtMs));
  }

  /** What an attempt without an answer had used up: the row's, unless its end says otherwise. */
  spent(usage: Usage, costMicroUsd: bigint): void {
    this.#usage = usage;
    this.#costMicroUsd = costMicroUsd;
  }

  /** The first call counts; later ones do nothing. Never rejects. */
  async settle(end: RequestEnd): Promise<void> {
    if (this.#settled) return;
    const row = this.#row(end);
    this.#settled = true;
    const { telemetry, requestLog, clock } = this.#io;
    const settledAtMs = clock.monotonicMs();
    const kept = requestLog.record(row);
    telemetry.settled(this.#call, row);
    await kept;
    telemetry.rowKept(clock.monotonicMs() - settledAtMs);
  }

  #row(end: RequestEnd): LogRow {
    const call = this.#call;
    const { last, served, reports, tries } = this.ledger;
    const cached = end.cachedFrom !== undefined;
    const unserved: Residency = call.options.residency ?? 'global';
    return {
      rowId: this.#io.newId(),
      userId: call.userId,
      requestId: call.requestId,
      createdAtMicros: this.#io.clock.stampMicros(),
      mode: modeLabel(call),
      provider: cached ? 'cache' : (last?.provider ?? 'none'),
      model: end.cachedFrom ?? last?.model ?? 'none',
      keyId: cached ? null : (served?.key.id ?? null),
      usage: end.usage ?? this.#usage,
      latencyMs: end.latencyMs,
      ttftMs: end.ttftMs ?? null,
      costMicroUsd: end.costMicroUsd ?? this.#costMicroUsd,
      savedMicroUsd: end.savedMicroUsd ?? 0n,
      cacheHit: cached,
      stream: call.request.stream === true,
      status: end.status,
      error: end.error === null ? null : redactReason(end.error, null),
      residencyRequested: call.options.residency,
      residencyActual: cached ? 'cache' : (last?.residency ?? unserved),
      attempts: reports,
      tries,
      tablesVersion: call.tables.hash,
      traceId: call.trace?.traceId ?? null,
    };
  }
}
