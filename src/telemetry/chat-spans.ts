import type { Attributes } from '@opentelemetry/api';
import { SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { StoringTrace, TraceHeaders } from '../chat/telemetry-port.ts';
import type { Usage } from '../core/answer/usage.ts';
import type { AttemptRecord } from '../core/attempt-record.ts';
import type { Candidate } from '../core/candidate.ts';
import { otherName } from '../core/other-name.ts';
import type { AttemptFailure } from '../core/outcome.ts';
import type { SkippedCandidate } from '../core/plan.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { CallTrace, ChatCall } from '../core/request/chat-call.ts';
import { modeLabel } from '../core/request/chat-call.ts';
import { looksSecret } from '../core/secret/redact.ts';
import type { SettledRequest } from '../core/settled-request.ts';
import { outcomeOf } from '../core/settled-request.ts';
import { errorTypeOf } from './attempt-metrics.ts';
import { KnownServers } from './known-servers.ts';
import type { RequestSpan } from './request-span.ts';
import { attribute } from './span-names.ts';
import { writeTraceparent } from './traceparent.ts';
import type { OpenSpan, SpanMaker } from './tracing.ts';

/** Vendors and clients choose these texts; nothing sane is longer. */
const maxTextLength = 256;
const maxFinishReasons = 10;
export const noTraceHeaders: TraceHeaders = Object.freeze({});

const short = (text: string): string => text.slice(0, maxTextLength);

/** What vendors call an answer, a model, a reason. A sentence in its place may be a piece of the prompt. */
const vendorsName = /^[A-Za-z0-9_.:/@+-]+$/;
const nameOrOther = (text: string): string =>
  vendorsName.test(text) && !looksSecret(text) ? short(text) : otherName;

/**
 * What is noted of a request that is recorded: one CLIENT span per attempt below its SERVER span. No prompt, answer,
 * secret or vendor's message is ever put on a span.
 */
export class ChatSpans {
  readonly #maker: SpanMaker;
  readonly #propagateTo: ReadonlySet<ProviderName>;
  readonly #servers = new KnownServers();

  constructor(maker: SpanMaker, propagateTo: readonly ProviderName[]) {
    this.#maker = maker;
    this.#propagateTo = new Set(propagateTo);
  }

  /** The story begins. */
  planned(request: RequestSpan, skipped: readonly SkippedCandidate[]): void {
    request.begin();
    for (const { provider, model, reason, detail } of skipped) {
      request.span.addEvent(attribute.skippedEvent, {
        [attribute.skipProvider]: provider,
        [attribute.skipModel]: model,
        [attribute.skipReason]: reason,
        ...(detail === null ? {} : { [attribute.skipDetail]: detail }),
      });
    }
  }

  attemptStarted(request: RequestSpan, call: ChatCall, candidate: Candidate, number: number): void {
    const model = short(candidate.model);
    const span = this.#maker.startAttempt(`chat ${model}`, request.span.spanContext());
    span.setAttribute(attribute.operation, 'chat');
    span.setAttribute(attribute.provider, candidate.provider);
    span.setAttribute(attribute.requestModel, model);
    span.setAttribute(attribute.requestStream, call.request.stream === true);
    span.setAttribute(attribute.attemptNumber, number);
    if (request.fallbackReason !== null) span.setAttribute(attribute.fallbackReason, request.fallbackReason);
    request.sends = 0;
    request.attempt = span;
  }

  attemptSent(request: RequestSpan, origin: string): void {
    const span = request.attempt;
    if (span === null) return;
    request.sends += 1;
    if (request.sends > 1) return;
    const { address, port } = this.#servers.of(origin);
    span.setAttribute(attribute.serverAddress, address);
    span.setAttribute(attribute.serverPort, port);
  }

  /** What tells this candidate's provider of the trace, recorded or not. `attempt`: where its span lies. */
  headersFor({ provider }: Candidate, trace: CallTrace, attempt: OpenSpan | null): TraceHeaders {
    if (!this.#propagateTo.has(provider)) return noTraceHeaders;
    const spanId = attempt?.spanContext().spanId ?? trace.spanId;
    return { traceparent: writeTraceparent({ ...trace, spanId }) };
  }

  answerBegan({ attempt }: RequestSpan): void {
    attempt?.addEvent(attribute.firstByteEvent);
  }

  streamOpened({ attempt }: RequestSpan): void {
    attempt?.addEvent(attribute.firstChunkEvent);
  }

  streamStalled({ attempt }: RequestSpan, gapMs: number): void {
    attempt?.addEvent(attribute.stallEvent, { [attribute.stallSeconds]: gapMs / 1000 });
  }

  attemptEnded(request: RequestSpan, record: AttemptRecord): void {
    const span = request.attempt;
    if (span === null) return;
    request.attempt = null;
    if (request.sends > 1) span.setAttribute(attribute.resendCount, request.sends - 1);
    noteAttempt(span, record);
    if (isFailure(record)) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      const exception = exceptionOf(record);
      if (exception !== null) span.addEvent(attribute.exceptionEvent, exception);
    }
    span.end();
  }

  fellBack(request: RequestSpan, failure: AttemptFailure): void {
    request.fallbackReason = failure.kind;
  }

  cacheHit({ span }: RequestSpan, { traceId, spanId }: StoringTrace): void {
    if (traceId === null || spanId === null) return;
    span.addLink({ context: { traceId, spanId, traceFlags: TraceFlags.SAMPLED } });
  }

  settled(request: RequestSpan, call: ChatCall, settled: SettledRequest): void {
    const { span } = request;
    span.setAttribute(attribute.mode, modeLabel(call));
    span.setAttribute(attribute.requestId, call.requestId);
    span.setAttribute(attribute.cacheResult, settled.cache);
    span.setAttribute(attribute.residencyActual, settled.residencyActual);
    span.setAttribute(attribute.attempts, settled.tries);
    span.setAttribute(attribute.costMicroUsd, Number(settled.costMicroUsd));
    span.setAttribute(attribute.configGeneration, call.tables.generation);
    span.setAttribute(attribute.stream, settled.stream);
    span.setAttribute(attribute.outcome, outcomeOf(settled));
    if (settled.residencyBound !== null)
      span.setAttribute(attribute.residencyRequested, settled.residencyBound);
    request.settle();
  }
}

const attemptOutcomes = { served: 'served', failed: 'failed', cut: 'failed', cancelled: 'aborted' } as const;

const isFailure = ({ end }: AttemptRecord): boolean => attemptOutcomes[end.kind] === 'failed';

function noteAttempt(span: OpenSpan, record: AttemptRecord): void {
  const { end, answer, firstTokenMs, usage, dropped } = record;
  const failure = end.kind === 'failed' ? end.failure : null;
  span.setAttribute(attribute.attemptOutcome, attemptOutcomes[end.kind]);
  const status = end.kind === 'served' || firstTokenMs !== null ? 200 : (failure?.status ?? null);
  if (status !== null) span.setAttribute(attribute.status, status);
  if (end.kind !== 'served') span.setAttribute(attribute.errorType, errorTypeOf(record));
  if (failure !== null && failure.retryAfterMs !== null) {
    span.setAttribute(attribute.retryAfterMs, failure.retryAfterMs);
  }
  if (firstTokenMs !== null) span.setAttribute(attribute.firstChunkSeconds, firstTokenMs / 1000);
  if (dropped.length > 0) span.setAttribute(attribute.droppedFields, dropped.length);
  if (answer !== null) {
    span.setAttribute(attribute.responseId, nameOrOther(answer.id));
    span.setAttribute(attribute.responseModel, nameOrOther(answer.model));
    span.setAttribute(
      attribute.finishReasons,
      answer.finishReasons.slice(0, maxFinishReasons).map(nameOrOther),
    );
  }
  if (usage !== null && usage.basis !== 'none') noteUsage(span, usage);
}

/**
 * Attributes of the `exception` event of a call that got no answer, or only half of one; null where a status
 * says why. The message is ours: what a vendor says is on no span.
 */
function exceptionOf(record: AttemptRecord): Attributes | null {
  if (record.end.kind !== 'failed') return { [attribute.exceptionType]: errorTypeOf(record) };
  const { failure } = record.end;
  if (failure.status !== null) return null;
  return { [attribute.exceptionType]: failure.kind, [attribute.exceptionMessage]: failure.reason };
}

function noteUsage(span: OpenSpan, usage: Usage): void {
  span.setAttribute(attribute.inputTokens, usage.inputTokens);
  span.setAttribute(attribute.outputTokens, usage.outputTokens);
  const written = usage.cacheWriteTokens + usage.cacheWriteLongTokens;
  if (usage.cachedInputTokens > 0) span.setAttribute(attribute.cachedInputTokens, usage.cachedInputTokens);
  if (written > 0) span.setAttribute(attribute.cacheWriteTokens, written);
  if (usage.reasoningTokens > 0) span.setAttribute(attribute.reasoningTokens, usage.reasoningTokens);
}
