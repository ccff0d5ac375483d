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
import { KnownServers } from './known-servers.ts';
import type { PutAttributes } from './put-attributes.ts';
import { RequestSpan } from './request-span.ts';
import { attribute } from './span-names.ts';
import { writeTraceparent } from './traceparent.ts';
import type { SpanMaker } from './tracing.ts';

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
  readonly #put: PutAttributes;
  readonly #propagateTo: ReadonlySet<ProviderName>;
  readonly #servers = new KnownServers();

  constructor({ tracer, put }: SpanMaker, propagateTo: readonly ProviderName[]) {
    this.#tracer = tracer;
    this.#put = put;
    this.#propagateTo = new Set(propagateTo);
  }

  /** The story begins. */
  planned(call: ChatCall, skipped: readonly SkippedCandidate[]): void {
    const request = recorded(call);
    if (request === null) return;
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

  attemptStarted(call: ChatCall, candidate: Candidate, number: number): void {
    const request = recorded(call);
    if (request === null) return;
    const model = short(candidate.model);
    const span = this.#tracer.startSpan(`chat ${model}`, clientSpan, request.context);
    // Once it is there: the SDK copies and checks those that a span begins with twice.
    this.#put(span, {
      [attribute.operation]: 'chat',
      [attribute.provider]: candidate.provider,
      [attribute.requestModel]: model,
      [attribute.requestStream]: call.request.stream === true,
      [attribute.attemptNumber]: number,
    });
    if (request.fallbackReason !== null) span.setAttribute(attribute.fallbackReason, request.fallbackReason);
    request.sends = 0;
    request.attempt = span;
  }

  attemptSent(call: ChatCall, candidate: Candidate, origin: string): TraceHeaders {
    const span = recorded(call)?.attempt ?? null;
    if (span !== null) this.#noteSend(call.trace as RequestSpan, span, origin);
    if (call.trace === null || !this.#propagateTo.has(candidate.provider)) return noHeaders;
    const spanId = span?.spanContext().spanId ?? call.trace.spanId;
    return { traceparent: writeTraceparent({ ...call.trace, spanId }) };
  }

  answerBegan(call: ChatCall): void {
    recorded(call)?.attempt?.addEvent(attribute.firstByteEvent);
  }

  streamOpened(call: ChatCall): void {
    recorded(call)?.attempt?.addEvent(attribute.firstChunkEvent);
  }

  streamStalled(call: ChatCall, gapMs: number): void {
    recorded(call)?.attempt?.addEvent(attribute.stallEvent, {
      [attribute.stallSeconds]: gapMs / 1000,
    });
  }

  attemptEnded(call: ChatCall, record: AttemptRecord): void {
    const request = recorded(call);
    const span = request?.attempt ?? null;
    if (request === null || span === null) return;
    request.attempt = null;
    this.#put(span, attemptAttributes(record));
    if (isFailure(record)) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      const exception = exceptionOf(record);
      if (exception !== null) span.addEvent(attribute.exceptionEvent, exception);
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
    this.#put(request.span, {
      [attribute.mode]: modeLabel(call),
      [attribute.requestId]: call.requestId,
      [attribute.cacheResult]: settled.cache,
      [attribute.residencyActual]: settled.residencyActual,
      [attribute.attempts]: settled.tries,
      [attribute.costMicroUsd]: Number(settled.costMicroUsd),
      [attribute.configGeneration]: call.tables.generation,
      [attribute.stream]: settled.stream,
      [attribute.outcome]: outcomeOf(settled),
      ...(settled.residencyBound === null ? {} : { [attribute.residencyRequested]: settled.residencyBound }),
    });
    request.settle();
  }

  #noteSend(request: RequestSpan, span: Span, origin: string): void {
    if (request.sends > 0) span.setAttribute(attribute.resendCount, request.sends);
    request.sends += 1;
    if (request.sends > 1) return;
    const { address, port } = this.#servers.of(origin);
    this.#put(span, { [attribute.serverAddress]: address, [attribute.serverPort]: port });
  }
}

const attemptOutcomes = { served: 'served', failed: 'failed', cut: 'failed', cancelled: 'aborted' } as const;

const isFailure = ({ end }: AttemptRecord): boolean => attemptOutcomes[end.kind] === 'failed';

function attemptAttributes(record: AttemptRecord): Attributes {
  const { end, answer, firstTokenMs, usage, dropped } = record;
  const failure = end.kind === 'failed' ? end.failure : null;
  const attributes: Attributes = { [attribute.attemptOutcome]: attemptOutcomes[end.kind] };
  const status = end.kind === 'served' || firstTokenMs !== null ? 200 : (failure?.status ?? null);
  if (status !== null) attributes[attribute.status] = status;
  if (end.kind !== 'served') attributes[attribute.errorType] = errorTypeOf(record);
  if (failure !== null && failure.retryAfterMs !== null) {
    attributes[attribute.retryAfterMs] = failure.retryAfterMs;
  }
  if (firstTokenMs !== null) attributes[attribute.firstChunkSeconds] = firstTokenMs / 1000;
  if (dropped.length > 0) attributes[attribute.droppedFields] = dropped.length;
  if (answer !== null) {
    attributes[attribute.responseId] = short(answer.id);
    attributes[attribute.responseModel] = short(answer.model);
    attributes[attribute.finishReasons] = answer.finishReasons.slice(0, maxFinishReasons).map(short);
  }
  if (usage !== null && usage.basis !== 'none') Object.assign(attributes, usageAttributes(usage));
  return attributes;
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

function usageAttributes(usage: Usage): Attributes {
  const attributes: Attributes = {
    [attribute.inputTokens]: usage.inputTokens,
    [attribute.outputTokens]: usage.outputTokens,
  };
  const written = usage.cacheWriteTokens + usage.cacheWriteLongTokens;
  if (usage.cachedInputTokens > 0) attributes[attribute.cachedInputTokens] = usage.cachedInputTokens;
  if (written > 0) attributes[attribute.cacheWriteTokens] = written;
  if (usage.reasoningTokens > 0) attributes[attribute.reasoningTokens] = usage.reasoningTokens;
  return attributes;
}
