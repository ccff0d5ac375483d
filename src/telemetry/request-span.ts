import type { IncomingHttpHeaders } from 'node:http';
import { context, ROOT_CONTEXT, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import type { CallTrace } from '../core/request/chat-call.ts';
import type { EndedRequest } from '../http/ended-request.ts';
import { attribute } from './span-names.ts';
import { isSampled, readTraceparent } from './traceparent.ts';
import type { OpenSpan, RequestStart, SpanMaker } from './tracing.ts';

/**
 * The SERVER span of one request, and what its story has open. It ends when the last byte has left and, for
 * a chat whose client left early, when the story has been settled too.
 */
export class RequestSpan implements CallTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
  readonly span: OpenSpan;
  /** The attempt under way. */
  attempt: OpenSpan | null = null;
  /** How often that attempt was written to a socket. */
  sends = 0;
  /** Why the attempt before it failed. */
  fallbackReason: string | null = null;
  #telling = false;
  /** How it ended before its story did. */
  #ended: EndedRequest | null = null;

  constructor(span: OpenSpan) {
    const spanContext = span.spanContext();
    this.traceId = spanContext.traceId;
    this.spanId = spanContext.spanId;
    this.sampled = isSampled(spanContext);
    this.span = span;
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
    span.setAttribute(attribute.status, status);
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

  constructor(span: OpenSpan, wish: Wish) {
    super(span);
    this.wish = wish;
  }
}

/**
 * Starts the span of a request as a child of the caller's, if the caller named one. A caller may always ask not to be
 * recorded. To be recorded is a wish: from a trusted peer it is granted once the request is authenticated
 * (`grantWish`); to everybody else applies what would be decided for a request without a caller, so that nobody can
 * have us record, and a trace id of their choosing does not sway a sampler that looks at it (the SDK's, where spans are
 * its own, is asked about that id as well: both have to say yes). `trusted`: the peer is a
 * proxy of the operator's. Null: it has no trace, since it is not recorded and nobody else has one of it: under ids of
 * its own nothing could be found.
 */
export function startRequestSpan(
  maker: SpanMaker,
  method: string,
  route: string | null,
  headers: IncomingHttpHeaders,
  trusted = false,
): CallTrace | null {
  const caller = readTraceparent(headers['traceparent'], headers['tracestate']);
  const name = route === null ? method : `${method} ${route}`;
  const own = maker.startTrace(name);
  if (caller === null) return own === null ? null : describedSpan(maker, own, method, route);
  // Else never ended, so never exported: it is the decision that is wanted.
  const isOurs = own !== null && isSampled(own.spanContext());
  const wished = isSampled(caller);
  const below = (start: RequestStart): CallTrace =>
    describedSpan(maker, maker.startRequest(name, caller, start), method, route);
  if (wished && isOurs) return below({ isDecided: true });
  const { traceId } = caller;
  const quiet = trace.wrapSpanContext({ traceId, spanId: maker.newSpanId(), traceFlags: TraceFlags.NONE });
  if (!wished || !trusted) return traceOf(maker, quiet);
  const startedAtMs = Date.now();
  return new WishedSpan(quiet, { begin: () => below({ startedAtMs }) });
}

function describedSpan(maker: SpanMaker, span: OpenSpan, method: string, route: string | null): CallTrace {
  const request = traceOf(maker, span);
  if (!request.sampled) return request;
  // Only now: no sampler of `OTEL_TRACES_SAMPLER` looks at them.
  span.setAttribute(attribute.method, method);
  span.setAttribute(attribute.urlScheme, 'http');
  if (route !== null) {
    span.setAttribute(attribute.route, route);
    span.setAttribute(attribute.urlPath, route);
  }
  return request;
}

/** Nobody but auto-instrumentation asks for the span of a request that is not recorded. */
function traceOf({ auto }: SpanMaker, span: OpenSpan): CallTrace {
  const spanContext = span.spanContext();
  if (auto || isSampled(spanContext)) return new RequestSpan(span);
  const { traceId, spanId } = spanContext;
  return { traceId, spanId, sampled: false };
}

/** The span of a request whose caller is known now: another one where that caller's wish is granted. */
export function grantWish(request: CallTrace | null): CallTrace | null {
  return request instanceof WishedSpan ? request.wish.begin() : request;
}

/** Runs `next` with the span active, which is how auto-instrumentation finds its parent. */
export function runWithin({ span }: RequestSpan, next: () => void): void {
  context.with(trace.setSpanContext(ROOT_CONTEXT, span.spanContext()), next);
}
