import type { SpanContext } from '@opentelemetry/api';
import { SpanKind, TraceFlags, trace } from '@opentelemetry/api';
import type { HeadSampler } from './head-sampler.ts';
import { foldOf } from './head-sampler.ts';
import type { RandomIds } from './random-ids.ts';
import { RecordedSpan } from './recorded-span.ts';
import { isSampled } from './traceparent.ts';
import type { OpenSpan, RequestStart, SpanMaker } from './tracing.ts';

const now: RequestStart = Object.freeze({});

/** Spans of our own: what is recorded is decided before there is one. */
export class OwnSpans implements SpanMaker {
  readonly auto = false;
  readonly isTold: boolean;
  readonly #sampler: HeadSampler;
  readonly #ids: RandomIds;
  readonly #ended: (span: RecordedSpan) => void;

  constructor(sampler: HeadSampler, ids: RandomIds, isTold: boolean, ended: (span: RecordedSpan) => void) {
    this.#sampler = sampler;
    this.#ids = ids;
    this.isTold = isTold;
    this.#ended = ended;
  }

  startTrace(name: string): OpenSpan | null {
    const isRecorded = this.#sampler.samples(this.#ids.drawTrace());
    if (!isRecorded && !this.isTold) return null;
    return this.#start(name, this.#ids.drawnTraceId(), null, isRecorded);
  }

  startRequest(name: string, caller: SpanContext, { isDecided, startedAtMs }: RequestStart = now): OpenSpan {
    const { traceId } = caller;
    const { followsCallers } = this.#sampler;
    const isRecorded =
      isDecided ?? (followsCallers ? isSampled(caller) : this.#sampler.samples(foldOf(traceId)));
    return this.#start(name, traceId, caller, isRecorded, startedAtMs);
  }

  startAttempt(name: string, request: SpanContext): OpenSpan {
    const context = this.#contextOf(request.traceId, request, TraceFlags.SAMPLED);
    return new RecordedSpan(
      { name, kind: SpanKind.CLIENT, context, parent: request, startedAtMs: null },
      this.#ended,
    );
  }

  newSpanId(): string {
    return this.#ids.generateSpanId();
  }

  #start(
    name: string,
    traceId: string,
    parent: SpanContext | null,
    isRecorded: boolean,
    startedAtMs: number | null = null,
  ): OpenSpan {
    const context = this.#contextOf(traceId, parent, isRecorded ? TraceFlags.SAMPLED : TraceFlags.NONE);
    if (!isRecorded) return trace.wrapSpanContext(context);
    return new RecordedSpan({ name, kind: SpanKind.SERVER, context, parent, startedAtMs }, this.#ended);
  }

  #contextOf(traceId: string, parent: SpanContext | null, traceFlags: TraceFlags): SpanContext {
    const spanId = this.#ids.generateSpanId();
    const traceState = parent?.traceState;
    return traceState === undefined
      ? { traceId, spanId, traceFlags }
      : { traceId, spanId, traceFlags, traceState };
  }
}
