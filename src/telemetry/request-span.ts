import type { IncomingHttpHeaders } from 'node:http';
import type { Attributes, Context, Span, SpanContext, SpanOptions } from '@opentelemetry/api';
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import type { CallTrace } from '../core/request/chat-call.ts';
import type { EndedRequest } from '../http/ended-request.ts';
import type { PutAttributes } from './put-attributes.ts';
import { attribute } from './span-names.ts';
import { readTraceparent } from './traceparent.ts';
import type { SpanMaker } from './tracing.ts';

/**
 * The SERVER span of one request, and what its story has open. It ends when the last byte has left and, for
 * a chat whose client left early, when the story has been settled too.
 */
export class RequestSpan implements CallTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
  readonly span: Span;
  readonly put: PutAttributes;
  /** The attempt under way. */
  attempt: Span | null = null;
  /** How often that attempt was written to a socket. */
  sends = 0;
  /** Why the attempt before it failed. */
  fallbackReason: string | null = null;
  readonly #parent: Context;
  #context: Context | null = null;
  #telling = false;
  /** How it ended before its story did. */
  #ended: EndedRequest | null = null;

  constructor(span: Span, parent: Context, put: PutAttributes) {
    const spanContext = span.spanContext();
    this.traceId = spanContext.traceId;
    this.spanId = spanContext.spanId;
    this.sampled = isSampled(spanContext);
    this.span = span;
    this.put = put;
    this.#parent = parent;
  }

  /** With the span in it. */
  get context(): Context {
    this.#context ??= trace.setSpan(this.#parent, this.span);
    return this.#context;
  }

  /** A story has begun and will settle. */
  begin(): void {
    this.#telling = true;
  }

  /** The story has been settled. */
  settle(): void {
    this.#telling = false;
    if (this.#ended !== null) this.#finish(this.#ended);
    this.#ended = null;
  }

  /** The last byte has left, or the client has. */
  end(ended: EndedRequest): void {
    // A story settles before the last byte: after it there is nothing to wait for, whatever went wrong.
    if (ended.whole || !this.#telling) this.#finish(ended);
    else this.#ended = ended;
  }

  #finish({ status }: EndedRequest): void {
    const { span } = this;
    if (this.sampled) this.put(span, { [attribute.status]: status });
    if (status >= 500) {
      span.setAttribute(attribute.errorType, String(status));
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
  }
}

/** A caller's wish that the request is recorded, kept until somebody known has made it. */
interface Wish {
  begin(): CallTrace;
}

/** The span of a request that is not recorded unless its caller turns out to be a known one. */
class WishedSpan extends RequestSpan {
  readonly wish: Wish;

  constructor(span: Span, parent: Context, put: PutAttributes, wish: Wish) {
    super(span, parent, put);
    this.wish = wish;
  }
}

/**
 * Starts the span of a request as a child of the caller's, if the caller named one. A caller may always ask not to be
 * recorded. To be recorded is a wish: from a trusted peer it is granted once the request is authenticated
 * (`grantWish`); to everybody else applies what would be decided for a request without a caller, so that nobody can
 * have us record, and a trace id of their choosing does not sway a sampler that looks at it. `trusted`: the peer is a
 * proxy of the operator's.
 */
export function startRequestSpan(
  { tracer, put, auto }: SpanMaker,
  method: string,
  route: string | null,
  headers: IncomingHttpHeaders,
  trusted = false,
): CallTrace {
  const caller = readTraceparent(headers['traceparent'], headers['tracestate']);
  const of = (span: Span, parent: Context): CallTrace => {
    const spanContext = span.spanContext();
    // Nobody asks for the span of one that is not recorded, and most are not.
    return isSampled(spanContext) || auto ? new RequestSpan(span, parent, put) : idsOf(spanContext);
  };
  const start = (parent: Context, options: SpanOptions): CallTrace => {
    const span = tracer.startSpan(route === null ? method : `${method} ${route}`, options, parent);
    const request = of(span, parent);
    // Only now: no sampler of `OTEL_TRACES_SAMPLER` looks at them.
    if (request.sampled) put(span, descriptionOf(method, route));
    return request;
  };
  if (caller === null) return start(ROOT_CONTEXT, serverSpan);
  const parent = trace.setSpanContext(ROOT_CONTEXT, caller);
  // Never ended, so never exported: it is the decision that is wanted.
  const own = tracer.startSpan(method, serverSpan, ROOT_CONTEXT).spanContext();
  const wished = isSampled(caller);
  if (wished && isSampled(own)) return start(parent, serverSpan);
  const quiet = trace.wrapSpanContext({
    traceId: caller.traceId,
    spanId: own.spanId,
    traceFlags: TraceFlags.NONE,
  });
  if (!wished || !trusted) return of(quiet, parent);
  const startTime = new Date();
  return new WishedSpan(quiet, parent, put, { begin: () => start(parent, { ...serverSpan, startTime }) });
}

const serverSpan: SpanOptions = Object.freeze({ kind: SpanKind.SERVER });

function descriptionOf(method: string, route: string | null): Attributes {
  const description = { [attribute.method]: method, [attribute.urlScheme]: 'http' };
  return route === null
    ? description
    : { ...description, [attribute.route]: route, [attribute.urlPath]: route };
}

/** The ids of a request that is not recorded, for its log lines and its row. */
const idsOf = ({ traceId, spanId }: SpanContext): CallTrace => ({ traceId, spanId, sampled: false });

/** The span of a request whose caller is known now: another one where that caller's wish is granted. */
export function grantWish(request: CallTrace | null): CallTrace | null {
  return request instanceof WishedSpan ? request.wish.begin() : request;
}

function isSampled({ traceFlags }: SpanContext): boolean {
  return (traceFlags & TraceFlags.SAMPLED) !== 0;
}

/** Runs `next` with the span active, which is how auto-instrumentation finds its parent. */
export function runWithin(request: RequestSpan, next: () => void): void {
  context.with(request.context, next);
}
