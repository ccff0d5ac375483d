/** What is noted on the span of an attempt while it lasts, without a wait for it. */
import type { Attributes, Span, Tracer } from '@opentelemetry/api';
import { TraceFlags, trace } from '@opentelemetry/api';
import { expect, test } from 'vitest';
import type { ChatCall } from '../../src/core/request/chat-call.ts';
import { ChatSpans } from '../../src/telemetry/chat-spans.ts';
import { putChecked } from '../../src/telemetry/put-attributes.ts';
import type { RequestSpan } from '../../src/telemetry/request-span.ts';
import { startRequestSpan } from '../../src/telemetry/request-span.ts';
import { logRow } from '../adapters/postgres/log-rows.ts';
import { callOf, candidateOf, testTables } from '../chat/story.ts';

const tables = testTables();
const candidate = candidateOf('openai', tables);

type Event = readonly [name: string, attributes: Attributes | undefined];

/** A call whose spans keep their events, sampled or not. */
function begin(traceFlags: TraceFlags) {
  const events: Event[] = [];
  const ended: Span[] = [];
  const startSpan = (): Span => {
    const span = trace.wrapSpanContext({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags });
    const addEvent = (name: string, attributes?: Attributes) => {
      events.push([name, attributes]);
      return span;
    };
    const end = () => void ended.push(span);
    return Object.assign(span, { addEvent, end });
  };
  const tracer = { startSpan } as unknown as Tracer;
  const maker = { tracer, put: putChecked, auto: true };
  const request = startRequestSpan(maker, 'POST', '/v1/chat/completions', {}) as RequestSpan;
  return {
    events,
    ended,
    request,
    spans: new ChatSpans(maker, []),
    call: { ...callOf({ tables }), trace: request },
  };
}

function tellStalls(spans: ChatSpans, call: ChatCall): void {
  spans.attemptStarted(call, candidate, 1);
  spans.answerBegan(call);
  spans.streamOpened(call);
  spans.streamStalled(call, 7_500);
  spans.attemptEnded(call, {
    kind: 'tried',
    candidate,
    number: 1,
    addressClass: null,
    end: { kind: 'served' },
    startedAtMs: 0,
    durationMs: 9_000,
    firstTokenMs: 100,
    usage: null,
    answer: null,
    dropped: [],
  });
}

test('a silence of an open stream is an event with its length in seconds', () => {
  const { events, spans, call } = begin(TraceFlags.SAMPLED);
  tellStalls(spans, call);
  expect(events).toEqual([
    ['first_byte', undefined],
    ['first_chunk', undefined],
    ['stall', { 'gw.stall.seconds': 7.5 }],
  ]);
});

test('nothing is noted for a request that is not sampled', () => {
  const { events, spans, call } = begin(TraceFlags.NONE);
  tellStalls(spans, call);
  expect(events).toEqual([]);
  expect(call.trace.attempt).toBeNull();
});

test('the span of a client that left ends with the settlement, also where the plan skipped nobody', () => {
  const { ended, request, spans, call } = begin(TraceFlags.SAMPLED);
  const { span } = request;
  spans.planned(call, []);
  const left = { method: 'POST', route: null, status: 499, whole: false, durationMs: 1, trace: request };
  request.end({ ...left, toUserServer: false });
  expect(ended).toEqual([]);
  spans.settled(call, logRow({ end: { status: 'client_closed' } }));
  expect(ended).toEqual([span]);
});
