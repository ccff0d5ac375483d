import type { Attributes, Span, SpanOptions, Tracer } from '@opentelemetry/api';
import { SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { StoringTrace, TraceHeaders } from '../chat/telemetry-port.ts';
import type { Usage } from '../core/answer/usage.ts';
import type { AttemptRecord } from '../core/attempt-record.ts';
import type { Candidate } from '../core/candidate.ts';
import type { AttemptFailure } from '../core/outcome.ts';
import type { SkippedCandidate } from '../core/plan.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import { modeLabel } from '../core/request/chat-call.ts';
import type { SettledRequest } from '../core/settled-request.ts';
import { outcomeOf } from '../core/settled-request.ts';
import { errorTypeOf } from './attempt-metrics.ts';
import { RequestSpan } from './request-span.ts';
import { names } from './span-names.ts';
import { writeTraceparent } from './traceparent.ts';

/** Vendors and clients choose these texts; nothing sane is longer. */
const maxTextLength = 256;
const maxFinishReasons = 10;
const clientSpan: SpanOptions = Object.freeze({ kind: SpanKind.CLIENT });
const noHeaders: TraceHeaders = Object.freeze({});

const short = (text: string): string => text.slice(0, maxTextLength);

/** The span of a call that is being recorded, else null: an unsampled request costs one look. */
function recorded(call: ChatCall): RequestSpan | null {
  const { trace } = call;
  return trace?.sampled === true && trace instanceof RequestSpan ? trace : null;
}

/**
 * One CLIENT span per attempt below the request's SERVER span. No prompt, answer, secret or vendor's message
 * is ever put on a span.
 */
export class ChatSpans {
  readonly #tracer: Tracer;
  readonly #propagateTo: ReadonlySet<ProviderName>;

  constructor(tracer: Tracer, propagateTo: readonly ProviderName[]) {
    this.#tracer = tracer;
    this.#propagateTo = new Set(propagateTo);
  }

  candidatesSkipped(call: ChatCall, skipped: readonly SkippedCandidate[]): void {
    const request = recorded(call);
    if (request === null) return;
    request.begin();
    for (const { provider, model, reason, detail } of skipped) {
      request.span.addEvent(names.skippedEvent, {
        [names.skipProvider]: provider,
        [names.skipModel]: model,
        [names.skipReason]: reason,
        ...(detail === null ? {} : { [names.skipDetail]: detail }),
      });
    }
  }

  attemptStarted(call: ChatCall, candidate: Candidate, number: number): void {
    const request = recorded(call);
    if (request === null) return;
    const model = short(candidate.model);
    const span = this.#tracer.startSpan(`chat ${model}`, clientSpan, request.context);
    // One by one, once it is there: the SDK copies and checks those that a span begins with twice.
    span.setAttribute(names.operation, 'chat');
    span.setAttribute(names.provider, candidate.provider);
    span.setAttribute(names.requestModel, model);
    span.setAttribute(names.requestStream, call.request.stream === true);
    span.setAttribute(names.attemptNumber, number);
    if (request.fallbackReason !== null) span.setAttribute(names.fallbackReason, request.fallbackReason);
    request.sends = 0;
    request.attempt = span;
  }

  attemptSent(call: ChatCall, candidate: Candidate, origin: string): TraceHeaders {
    const span = recorded(call)?.attempt ?? null;
    if (span !== null) noteSend(call.trace as RequestSpan, span, origin);
    if (call.trace === null || !this.#propagateTo.has(candidate.provider)) return noHeaders;
    const spanId = span?.spanContext().spanId ?? call.trace.spanId;
    return { traceparent: writeTraceparent({ ...call.trace, spanId }) };
  }

  answerBegan(call: ChatCall): void {
    recorded(call)?.attempt?.addEvent(names.firstByteEvent);
  }

  streamOpened(call: ChatCall): void {
    recorded(call)?.attempt?.addEvent(names.firstChunkEvent);
  }

  streamStalled(call: ChatCall, gapMs: number): void {
    recorded(call)?.attempt?.addEvent(names.stallEvent, { [names.stallSeconds]: gapMs / 1000 });
  }

  attemptEnded(call: ChatCall, record: AttemptRecord): void {
    const request = recorded(call);
    const span = request?.attempt ?? null;
    if (request === null || span === null) return;
    request.attempt = null;
    span.setAttributes(attemptAttributes(record));
    if (isFailure(record)) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      const exception = exceptionOf(record);
      if (exception !== null) span.addEvent(names.exceptionEvent, exception);
    }
    span.end();
  }

  fellBack(call: ChatCall, failure: AttemptFailure): void {
    const request = recorded(call);
    if (request !== null) request.fallbackReason = failure.kind;
  }

  cacheHit(call: ChatCall, { traceId, spanId }: StoringTrace): void {
    const request = recorded(call);
    if (request === null || traceId === null || spanId === null) return;
    request.span.addLink({ context: { traceId, spanId, traceFlags: TraceFlags.SAMPLED } });
  }

  settled(call: ChatCall, settled: SettledRequest): void {
    const request = recorded(call);
    if (request === null) return;
    request.span.setAttributes({
      [names.mode]: modeLabel(call),
      [names.requestId]: call.requestId,
      [names.cacheResult]: settled.cache,
      [names.residencyActual]: settled.residencyActual,
      [names.attempts]: settled.tries,
      [names.costMicroUsd]: Number(settled.costMicroUsd),
      [names.configGeneration]: call.tables.generation,
      [names.stream]: settled.stream,
      [names.outcome]: outcomeOf(settled),
      ...(settled.residencyRequested === null
        ? {}
        : { [names.residencyRequested]: settled.residencyRequested }),
    });
    request.settle();
  }
}

function noteSend(request: RequestSpan, span: Span, origin: string): void {
  if (request.sends > 0) span.setAttribute(names.resendCount, request.sends);
  request.sends += 1;
  if (request.sends > 1) return;
  const { hostname, port, protocol } = new URL(origin);
  span.setAttribute(names.serverAddress, hostname.replace(/^\[|\]$/g, ''));
  span.setAttribute(names.serverPort, port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port));
}

const attemptOutcomes = { served: 'served', failed: 'failed', cut: 'failed', cancelled: 'aborted' } as const;

const isFailure = ({ end }: AttemptRecord): boolean => attemptOutcomes[end.kind] === 'failed';

function attemptAttributes(record: AttemptRecord): Attributes {
  const { end, answer, firstTokenMs, usage, dropped } = record;
  const failure = end.kind === 'failed' ? end.failure : null;
  const attributes: Attributes = { [names.attemptOutcome]: attemptOutcomes[end.kind] };
  const status = end.kind === 'served' || firstTokenMs !== null ? 200 : (failure?.status ?? null);
  if (status !== null) attributes[names.status] = status;
  if (end.kind !== 'served') attributes[names.errorType] = errorTypeOf(record);
  if (failure !== null && failure.retryAfterMs !== null) {
    attributes[names.retryAfterMs] = failure.retryAfterMs;
  }
  if (firstTokenMs !== null) attributes[names.firstChunkSeconds] = firstTokenMs / 1000;
  if (dropped.length > 0) attributes[names.droppedFields] = dropped.length;
  if (answer !== null) {
    attributes[names.responseId] = short(answer.id);
    attributes[names.responseModel] = short(answer.model);
    attributes[names.finishReasons] = answer.finishReasons.slice(0, maxFinishReasons).map(short);
  }
  if (usage !== null && usage.basis !== 'none') Object.assign(attributes, usageAttributes(usage));
  return attributes;
}

/**
 * Attributes of the `exception` event of a call that got no answer, or only half of one; null where a status
 * says why. The message is ours: what a vendor says is on no span.
 */
function exceptionOf(record: AttemptRecord): Attributes | null {
  if (record.end.kind !== 'failed') return { [names.exceptionType]: errorTypeOf(record) };
  const { failure } = record.end;
  if (failure.status !== null) return null;
  return { [names.exceptionType]: failure.kind, [names.exceptionMessage]: failure.reason };
}

function usageAttributes(usage: Usage): Attributes {
  const attributes: Attributes = {
    [names.inputTokens]: usage.inputTokens,
    [names.outputTokens]: usage.outputTokens,
  };
  const written = usage.cacheWriteTokens + usage.cacheWriteLongTokens;
  if (usage.cachedInputTokens > 0) attributes[names.cachedInputTokens] = usage.cachedInputTokens;
  if (written > 0) attributes[names.cacheWriteTokens] = written;
  if (usage.reasoningTokens > 0) attributes[names.reasoningTokens] = usage.reasoningTokens;
  return attributes;
}
