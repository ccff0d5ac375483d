import type { IncomingHttpHeaders } from 'node:http';
import type { Context, Span, Tracer } from '@opentelemetry/api';
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import type { CallTrace } from '../core/chat-call.ts';
import type { EndedRequest } from '../http/http-telemetry.ts';
import { names } from './span-names.ts';
import { readTraceparent } from './traceparent.ts';

/**
 * The SERVER span of one request, and what its story has open. It ends when the last byte has left and, for
 * a chat whose client left early, when the story has been settled too.
 */
export class RequestSpan implements CallTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
  readonly span: Span;
  readonly context: Context;
  /** The attempt under way. */
  attempt: Span | null = null;
  /** How often that attempt was written to a socket. */
  sends = 0;
  /** Why the attempt before it failed. */
  fallbackReason: string | null = null;
  #telling = false;
  #ended: EndedRequest | null = null;

  constructor(span: Span, parent: Context) {
    const { traceId, spanId, traceFlags } = span.spanContext();
    this.traceId = traceId;
    this.spanId = spanId;
    this.sampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
    this.span = span;
    this.context = trace.setSpan(parent, span);
  }

  /** A story has begun and will settle. */
  begin(): void {
    this.#telling = true;
  }

  /** The story has been settled. */
  settle(): void {
    this.#telling = false;
    if (this.#ended?.whole === false) this.#finish(this.#ended);
  }

  /** The last byte has left, or the client has. */
  end(ended: EndedRequest): void {
    this.#ended = ended;
    // A story settles before the last byte: after it there is nothing to wait for, whatever went wrong.
    if (ended.whole || !this.#telling) this.#finish(ended);
  }

  #finish({ status }: EndedRequest): void {
    const { span } = this;
    span.setAttribute(names.status, status);
    if (status >= 500) {
      span.setAttribute(names.errorType, String(status));
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
  }
}

/** Starts the span of a request as a child of the caller's, if the caller named one. */
export function startRequestSpan(
  tracer: Tracer,
  method: string,
  route: string | null,
  headers: IncomingHttpHeaders,
): RequestSpan {
  const caller = readTraceparent(headers['traceparent'], headers['tracestate']);
  const parent = caller === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, caller);
  const span = tracer.startSpan(
    route === null ? method : `${method} ${route}`,
    {
      kind: SpanKind.SERVER,
      attributes: {
        [names.method]: method,
        [names.urlScheme]: 'http',
        ...(route === null ? {} : { [names.route]: route, [names.urlPath]: route }),
      },
    },
    parent,
  );
  return new RequestSpan(span, parent);
}

/** Runs `next` with the span active, which is how auto-instrumentation finds its parent. */
export function runWithin(request: RequestSpan, next: () => void): void {
  context.with(request.context, next);
}
