import type { SpanContext } from '@opentelemetry/api';
import { SpanKind, TraceFlags, trace } from '@opentelemetry/api';
import type { HeadSampler } from './head-sampler.ts';
import type { RandomIds } from './random-ids.ts';
import { RecordedSpan } from './recorded-span.ts';
import type { OpenSpan, SpanMaker } from './tracing.ts';

/**
 * Spans without the SDK's. A request that is not recorded, has no caller's trace, and of whose trace nobody is told,
 * is made nothing for: under ids of its own nothing could be found.
 */
export class OwnSpans implements SpanMaker {
  readonly auto = false;
  readonly #sampler: HeadSampler;
  readonly #ids: RandomIds;
  readonly #isTold: boolean;
  readonly #ended: (span: RecordedSpan) => void;

  /** `isTold`: some provider is sent the trace of each request, recorded or not. */
  constructor(sampler: HeadSampler, ids: RandomIds, isTold: boolean, ended: (span: RecordedSpan) => void) {
    this.#sampler = sampler;
    this.#ids = ids;
    this.#isTold = isTold;
    this.#ended = ended;
  }

  startRequest(name: string, caller: SpanContext | null, startedAtMs: number | null = null): OpenSpan | null {
    const traceId = caller === null ? this.#ids.generateTraceId() : caller.traceId;
    const isRecorded = this.#isRecorded(traceId, caller);
    if (!isRecorded && caller === null && !this.#isTold) return null;
    const context = this.#contextOf(traceId, caller, isRecorded ? TraceFlags.SAMPLED : TraceFlags.NONE);
    if (!isRecorded) return trace.wrapSpanContext(context);
    return new RecordedSpan(
      { name, kind: SpanKind.SERVER, context, parent: caller, startedAtMs },
      this.#ended,
    );
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

  #isRecorded(traceId: string, caller: SpanContext | null): boolean {
    if (caller === null || !this.#sampler.followsCallers) return this.#sampler.samples(traceId);
    return (caller.traceFlags & TraceFlags.SAMPLED) !== 0;
  }

  #contextOf(traceId: string, parent: SpanContext | null, traceFlags: TraceFlags): SpanContext {
    const spanId = this.#ids.generateSpanId();
    const traceState = parent?.traceState;
    return traceState === undefined
      ? { traceId, spanId, traceFlags }
      : { traceId, spanId, traceFlags, traceState };
  }
}
