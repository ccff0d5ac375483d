/** What is noted on the span of an attempt while it lasts, without a wait for it. */
import type { Attributes } from '@opentelemetry/api';
import { TraceFlags } from '@opentelemetry/api';
import { expect, test } from 'vitest';
import { ChatSpans } from '../../src/telemetry/chat-spans.ts';
import { RequestSpan } from '../../src/telemetry/request-span.ts';
import type { OpenSpan, SpanMaker } from '../../src/telemetry/tracing.ts';
import { logRow } from '../adapters/postgres/log-rows.ts';
import { servedRecord } from '../chat/attempt-records.ts';
import { callOf, candidateOf, testTables } from '../chat/story.ts';

const tables = testTables();
const candidate = candidateOf('openai', tables);

type Event = readonly [name: string, attributes: Attributes | undefined];

/** A request whose spans keep their events. */
function begin() {
  const events: Event[] = [];
  const noted: Attributes = {};
  const ended: OpenSpan[] = [];
  const startSpan = (): OpenSpan => {
    const span: OpenSpan = {
      spanContext: () => ({
        traceId: 'a'.repeat(32),
        spanId: 'b'.repeat(16),
        traceFlags: TraceFlags.SAMPLED,
      }),
      setAttribute: (name, value) => {
        noted[name] = value;
      },
      addEvent: (name, attributes) => void events.push([name, attributes]),
      addLink: () => undefined,
      setStatus: () => undefined,
      end: () => void ended.push(span),
    };
    return span;
  };
  const maker: SpanMaker = {
    auto: false,
    isTold: false,
    startTrace: startSpan,
    startRequest: startSpan,
    startAttempt: startSpan,
    newSpanId: () => 'c'.repeat(16),
  };
  const request = new RequestSpan(startSpan());
  const call = { ...callOf({ tables }), trace: request };
  return { events, noted, ended, request, spans: new ChatSpans(maker, []), call };
}

const served = servedRecord(candidate, { durationMs: 9_000 });

/** Whatever stands where a name belongs, a server of one's own, or a broken one, may have put there. */
test.each([
  ['chatcmpl-AbC123', 'chatcmpl-AbC123'],
  ['accounts/x/models/llama-v3p1:8b@2026', 'accounts/x/models/llama-v3p1:8b@2026'],
  ['The patient is ill', '_other'],
  ['मरीज़', '_other'],
  ['sk-proj-abc123XYZ', '_other'],
  ['', '_other'],
])('what a vendor calls %s is on a span as %s', (said, shown) => {
  const { noted, spans, request, call } = begin();
  spans.attemptStarted(request, call, candidate, 1);
  spans.attemptEnded(request, {
    ...served,
    answer: { id: said, model: said, finishReasons: ['stop', said] },
  });
  expect(noted).toMatchObject({
    'gen_ai.response.id': shown,
    'gen_ai.response.model': shown,
    'gen_ai.response.finish_reasons': ['stop', shown],
  });
});

test('a silence of an open stream is an event with its length in seconds', () => {
  const { events, spans, request, call } = begin();
  spans.attemptStarted(request, call, candidate, 1);
  spans.answerBegan(request);
  spans.streamOpened(request);
  spans.streamStalled(request, 7_500);
  spans.attemptEnded(request, served);
  expect(events).toEqual([
    ['first_byte', undefined],
    ['first_chunk', undefined],
    ['stall', { 'gw.stall.seconds': 7.5 }],
  ]);
});

test('the span of a client that left ends with the settlement, also where the plan skipped nobody', () => {
  const { ended, request, spans, call } = begin();
  const { span } = request;
  spans.planned(request, []);
  const left = { method: 'POST', route: null, status: 499, whole: false, durationMs: 1, trace: request };
  request.end({ ...left, userFault: null });
  expect(ended).toEqual([]);
  spans.settled(request, call, logRow({ end: { status: 'client_closed' } }));
  expect(ended).toEqual([span]);
});
