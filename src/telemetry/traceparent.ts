import type { SpanContext } from '@opentelemetry/api';
import { createTraceState, isSpanContextValid, TraceFlags } from '@opentelemetry/api';
import type { CallTrace } from '../core/request/chat-call.ts';

/** W3C Trace Context. Baggage is never read and never sent. */

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** Longer than this is nobody's trace state (W3C asks for 512 characters at least). */
const maxTraceStateLength = 1024;

type HeaderValue = string | readonly string[] | undefined;

/** The caller's span, or null when there is none or it is malformed. */
export function readTraceparent(traceparent: HeaderValue, tracestate: HeaderValue): SpanContext | null {
  if (typeof traceparent !== 'string') return null;
  const match = form.exec(traceparent.trim());
  if (match === null) return null;
  const [, version, traceId = '', spanId = '', flags = '', rest] = match;
  if (version === 'ff' || (version === '00' && rest !== undefined)) return null;
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  if (!isSpanContextValid(context)) return null;
  if (typeof tracestate !== 'string' || tracestate.length > maxTraceStateLength) return context;
  return { ...context, traceState: createTraceState(tracestate) };
}

export function isSampled({ traceFlags }: SpanContext): boolean {
  return (traceFlags & TraceFlags.SAMPLED) !== 0;
}

export function writeTraceparent({ traceId, spanId, sampled }: CallTrace): string {
  return `00-${traceId}-${spanId}-0${sampled ? 1 : 0}`;
}
