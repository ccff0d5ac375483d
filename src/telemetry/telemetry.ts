import type { IncomingHttpHeaders } from 'node:http';
import type { ChatTelemetry, StoringTrace, StreamEnding, TraceHeaders } from '../chat/telemetry-port.ts';
import type { KeyVerdict } from '../core/account/key-verdict.ts';
import type { AttemptRecord } from '../core/attempt-record.ts';
import type { Candidate } from '../core/candidate.ts';
import type { AttemptFailure } from '../core/outcome.ts';
import type { SkippedCandidate } from '../core/plan.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { CallTrace, ChatCall } from '../core/request/chat-call.ts';
import type { SettledRequest } from '../core/settled-request.ts';
import type { Asker, AuditEvent } from '../http/audit.ts';
import type { EndedRequest } from '../http/ended-request.ts';
import type { AuthFailure, HttpTelemetry, LegacySurface, Shortage } from '../http/http-telemetry.ts';
import type { TracingSettings } from '../tracing-settings.ts';
import { AccessLines } from './access-log.ts';
import type { AuditLog } from './audit-log.ts';
import { ChatSpans, noTraceHeaders } from './chat-spans.ts';
import type { Metrics } from './metrics.ts';
import { grantWish, RequestSpan, runWithin, startRequestSpan } from './request-span.ts';
import type { Tracing } from './tracing.ts';

/** Hands what the edge and the story report to metrics, spans and the access log. */
export class Telemetry implements ChatTelemetry, HttpTelemetry {
  readonly #metrics: Metrics;
  readonly #writeAccess: ((line: string) => void) | null;
  readonly #audit: AuditLog;
  readonly #tracing: Tracing | null;
  readonly #spans: ChatSpans | null;
  readonly #lines = new AccessLines();

  constructor(
    metrics: Metrics,
    writeAccess: ((line: string) => void) | null,
    audit: AuditLog,
    tracing: Tracing | null,
    settings: TracingSettings,
  ) {
    this.#metrics = metrics;
    this.#writeAccess = writeAccess;
    this.#audit = audit;
    this.#tracing = tracing;
    this.#spans = tracing === null ? null : new ChatSpans(tracing, settings.propagateTo);
  }

  requestStarted(
    method: string,
    route: string | null,
    headers: IncomingHttpHeaders,
    trusted: boolean,
  ): CallTrace | null {
    if (this.#tracing === null) return null;
    return startRequestSpan(this.#tracing, method, route, headers, trusted);
  }

  authenticated(trace: CallTrace | null): CallTrace | null {
    return grantWish(trace);
  }

  within(trace: CallTrace | null, next: () => void): void {
    if (this.#tracing?.auto === true && trace instanceof RequestSpan) runWithin(trace, next);
    else next();
  }

  requestEnded(ended: EndedRequest): void {
    this.#metrics.http.requestEnded(ended);
    if (ended.trace instanceof RequestSpan) ended.trace.end(ended);
  }

  requestShed(shortage: Shortage): void {
    this.#metrics.http.requestShed(shortage);
  }

  readerStalled(): void {
    this.#metrics.http.readerStalled();
  }

  authFailed(reason: AuthFailure, asker: Asker): void {
    this.#metrics.http.authFailed(reason);
    this.#audit.refused(reason, asker);
  }

  audited(event: AuditEvent, asker: Asker): void {
    this.#audit.happened(event, asker);
  }

  adminRequestEnded(method: string, route: string, status: number): void {
    this.#metrics.http.adminRequestEnded(method, route, status);
  }

  keyChecked(provider: ProviderName, verdict: KeyVerdict): void {
    this.#metrics.http.keyChecked(provider, verdict);
  }

  legacyUsed(surface: LegacySurface): void {
    this.#metrics.http.legacyUsed(surface);
  }

  planned(call: ChatCall, skipped: readonly SkippedCandidate[]): void {
    this.#metrics.chat.planned(call, skipped);
    const request = recorded(call);
    if (request !== null) this.#spans?.planned(request, skipped);
  }

  attemptStarted(call: ChatCall, candidate: Candidate, number: number): void {
    const request = recorded(call);
    if (request !== null) this.#spans?.attemptStarted(request, call, candidate, number);
  }

  attemptSent(call: ChatCall, candidate: Candidate, origin: string): TraceHeaders {
    if (call.trace === null || this.#spans === null) return noTraceHeaders;
    const request = recorded(call);
    if (request !== null) this.#spans.attemptSent(request, origin);
    return this.#spans.headersFor(candidate, call.trace, request?.attempt ?? null);
  }

  attemptEnded(call: ChatCall, record: AttemptRecord): void {
    this.#metrics.attempts.attemptEnded(call, record);
    const request = recorded(call);
    if (request !== null) this.#spans?.attemptEnded(request, record);
  }

  fellBack(call: ChatCall, from: Candidate, to: Candidate, failure: AttemptFailure): void {
    this.#metrics.chat.fellBack(call, from, to, failure);
    const request = recorded(call);
    if (request !== null) this.#spans?.fellBack(request, failure);
  }

  answerBegan(call: ChatCall): void {
    const request = recorded(call);
    if (request !== null) this.#spans?.answerBegan(request);
  }

  streamOpened(call: ChatCall, relayMs: number): void {
    this.#metrics.chat.streamOpened();
    this.#metrics.attempts.streamOpened(call, relayMs);
    const request = recorded(call);
    if (request !== null) this.#spans?.streamOpened(request);
  }

  streamStalled(call: ChatCall, gapMs: number): void {
    const request = recorded(call);
    if (request !== null) this.#spans?.streamStalled(request, gapMs);
  }

  streamClosed(end: StreamEnding, stalledMs: number): void {
    this.#metrics.chat.streamClosed(end, stalledMs);
  }

  cacheHit(call: ChatCall, stored: StoringTrace): void {
    const request = recorded(call);
    if (request !== null) this.#spans?.cacheHit(request, stored);
  }

  settled(call: ChatCall, settled: SettledRequest): void {
    this.#metrics.chat.settled(call, settled);
    this.#writeAccess?.(this.#lines.of(call, settled, Date.now()));
    const request = recorded(call);
    if (request !== null) this.#spans?.settled(request, call, settled);
  }
}

/** The span of a call that is recorded: most are not, and cost one look. */
function recorded({ trace }: ChatCall): RequestSpan | null {
  return trace?.sampled === true && trace instanceof RequestSpan ? trace : null;
}
