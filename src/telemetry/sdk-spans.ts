import type { Context, SpanContext, Tracer } from '@opentelemetry/api';
import { ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import type { RandomIds } from './random-ids.ts';
import { isSampled } from './traceparent.ts';
import type { OpenSpan, RequestStart, SpanMaker } from './tracing.ts';

/** Spans of the SDK's tracer: where limits, another protocol than the default or auto-instrumentation are asked for. */
export class SdkSpans implements SpanMaker {
  readonly auto: boolean;
  readonly isTold: boolean;
  readonly #tracer: Tracer;
  readonly #ids: RandomIds;

  constructor(tracer: Tracer, ids: RandomIds, isTold: boolean, auto: boolean) {
    this.#tracer = tracer;
    this.#ids = ids;
    this.isTold = isTold;
    this.auto = auto;
  }

  startTrace(name: string): OpenSpan | null {
    const span = this.#tracer.startSpan(name, { kind: SpanKind.SERVER }, ROOT_CONTEXT);
    return this.auto || this.isTold || isSampled(span.spanContext()) ? span : null;
  }

  startRequest(name: string, caller: SpanContext, { startedAtMs }: RequestStart = {}): OpenSpan {
    const options = { kind: SpanKind.SERVER };
    const timed = startedAtMs === undefined ? options : { ...options, startTime: new Date(startedAtMs) };
    return this.#tracer.startSpan(name, timed, below(caller));
  }

  startAttempt(name: string, request: SpanContext): OpenSpan {
    return this.#tracer.startSpan(name, { kind: SpanKind.CLIENT }, below(request));
  }

  newSpanId(): string {
    return this.#ids.generateSpanId();
  }
}

const below = (parent: SpanContext): Context => trace.setSpanContext(ROOT_CONTEXT, parent);
