/** Our encoding of spans of our own beside the SDK's of spans that say the same: the same bytes, whatever the span. */
import type { AttributeValue, HrTime, SpanContext, SpanStatusCode } from '@opentelemetry/api';
import { createTraceState } from '@opentelemetry/api';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { AlwaysOnSampler, TracerProvider } from '@opentelemetry/sdk-trace';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RecordedSpan } from '../../src/telemetry/recorded-span.ts';
import { SpanBatch } from '../../src/telemetry/span-batches.ts';
import type { SpanOrigin } from '../../src/telemetry/span-bytes.ts';

type ReadableSpan = Parameters<typeof ProtobufTraceSerializer.serializeRequest>[0][number];

/** What the SDK's tracer makes of this scope. */
function originOf(name: string, version?: string, schemaUrl?: string): SpanOrigin {
  const provider = new TracerProvider({ sampler: new AlwaysOnSampler() });
  const tracer = provider.getTracer(name, version, schemaUrl === undefined ? {} : { schemaUrl });
  const span = tracer.startSpan('span') as unknown as ReadableSpan;
  return { resource: span.resource, scope: span.instrumentationScope };
}

function timeOf(wallMs: number): HrTime {
  const seconds = Math.floor(wallMs / 1000);
  return [seconds, Math.round((wallMs - seconds * 1000) * 1e6)];
}

/** The same span, as the SDK has spans. */
function readable(span: RecordedSpan, { resource, scope }: SpanOrigin): ReadableSpan {
  return {
    name: span.name,
    kind: span.kind,
    spanContext: () => span.spanContext(),
    ...(span.parent === null ? {} : { parentSpanContext: span.parent }),
    startTime: timeOf(span.startedAtMs),
    endTime: timeOf(span.endedAtMs),
    status: { code: span.status },
    attributes: Object.fromEntries(span.keys.map((key, index) => [key, span.values[index]])),
    links: span.links,
    events: span.events.map(({ name, atMs, attributes }) => ({
      name,
      time: timeOf(atMs),
      ...(attributes === null ? {} : { attributes }),
    })),
    duration: [0, 0],
    ended: true,
    resource: resource as ReadableSpan['resource'],
    instrumentationScope: scope as ReadableSpan['instrumentationScope'],
    droppedAttributesCount: 0,
    droppedEventsCount: span.droppedEvents,
    droppedLinksCount: 0,
  };
}

function encoded(spans: readonly RecordedSpan[], origin: SpanOrigin): Buffer {
  const batch = new SpanBatch(origin);
  for (const span of spans) batch.add(span);
  expect(batch.count).toBe(spans.length);
  return Buffer.from(batch.encode());
}

function expectSame(spans: readonly RecordedSpan[], origin = originOf('test')): void {
  const reference = ProtobufTraceSerializer.serializeRequest(spans.map((span) => readable(span, origin)));
  const bytes = encoded(spans, origin);
  // Compared by itself first: a difference of long buffers is told too slowly.
  if (Buffer.compare(bytes, Buffer.from(reference ?? [])) === 0) return;
  expect(bytes.toString('hex')).toBe(Buffer.from(reference ?? []).toString('hex'));
}

const someContext: SpanContext = { traceId: 'a1'.repeat(16), spanId: 'b2'.repeat(8), traceFlags: 1 };

function spanOf(name: string, parent: SpanContext | null = null): RecordedSpan {
  return new RecordedSpan({ name, kind: 1, context: someContext, parent, startedAtMs: null }, () => {});
}

/** Of any characters, halves of pairs included, around the lengths at which the encoding changes. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  fc.constantFrom('\ud800', 'a\udc00b', '\uffff', '€'.repeat(64), 'é'.repeat(63)),
  fc.nat({ max: 20_000 }).map((length) => 'x'.repeat(length)),
  fc.constantFrom(0, 1, 63, 64, 65, 127, 128, 129, 16_383, 16_384).map((length) => 'y'.repeat(length)),
);
const number = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double(),
  fc.constantFrom(0, -0, 127, 128, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53, 2 ** 62, 2 ** 63, -1, -(2 ** 32)),
  fc.constantFrom(-(2 ** 63), -(2 ** 64), 0.1, Number.NaN, Number.POSITIVE_INFINITY, Number.MIN_VALUE),
);
const value: fc.Arbitrary<AttributeValue> = fc.oneof(
  text,
  number,
  fc.boolean(),
  fc.array(fc.string(), { maxLength: 4 }),
  fc.array(number, { maxLength: 4 }),
);
const key = fc
  .oneof(fc.string({ maxLength: 30 }), text, fc.constantFrom('http.route', 'gen_ai.usage.input_tokens'))
  // Index keys come first in an object, and a list knows nothing of that; none of ours is one.
  .filter((name) => !/^\d+$/.test(name) && name !== '__proto__');
const attributes = fc.dictionary(key, value, { maxKeys: 12, noNullPrototype: true });
const hex = (digits: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: digits, maxLength: digits });
const spanContext: fc.Arbitrary<SpanContext> = fc
  .record({
    traceId: hex(32),
    spanId: hex(16),
    traceFlags: fc.constantFrom(0, 1, 3, 255),
    isRemote: fc.option(fc.boolean(), { nil: undefined }),
    state: fc.option(fc.constantFrom('', 'a=b', 'vendor=1,other=t61rcWkgMzE'), { nil: undefined }),
  })
  .map(({ state, isRemote, ...context }) => ({
    ...context,
    ...(isRemote === undefined ? {} : { isRemote }),
    ...(state === undefined ? {} : { traceState: createTraceState(state) }),
  }));
/** Wall clock, whole milliseconds or not. */
const time = fc.oneof(fc.integer({ min: 0, max: 2 ** 42 }), fc.double({ min: 0, max: 2 ** 42, noNaN: true }));
const plan = fc.record({
  name: text,
  kind: fc.integer({ min: 0, max: 4 }),
  context: spanContext,
  parent: fc.option(spanContext),
  attributes,
  links: fc.array(spanContext, { maxLength: 4 }),
  events: fc.array(fc.record({ name: text, attributes: fc.option(attributes), atMs: time }), {
    maxLength: 5,
  }),
  droppedEvents: fc.constantFrom(0, 1, 300),
  code: fc.constantFrom<SpanStatusCode>(0, 1, 2),
  startedAtMs: time,
  lasts: fc.nat({ max: 2 ** 31 }),
});

describe('the bytes of spans are those of the SDK’s serializer', () => {
  test('for any spans, of any tracer', () => {
    const origins = [
      originOf('model-gateway', undefined, 'https://opentelemetry.io/schemas/1.41.0'),
      originOf('ünï', '1', ''),
    ];
    fc.assert(
      fc.property(
        fc.array(plan, { minLength: 1, maxLength: 6 }),
        fc.constantFrom(...origins),
        (plans, origin) => {
          const spans = plans.map((made) => {
            const span = new RecordedSpan(made, () => {});
            for (const [name, given] of Object.entries(made.attributes)) span.setAttribute(name, given);
            for (const context of made.links) span.addLink({ context });
            span.events.push(...made.events);
            span.droppedEvents = made.droppedEvents;
            span.setStatus({ code: made.code });
            span.endedAtMs = made.startedAtMs + made.lasts;
            return span;
          });
          expectSame(spans, origin);
        },
      ),
      { numRuns: 400 },
    );
  });

  test('for times now, and for a span that is as bare as can be', () => {
    const span = spanOf('');
    span.end();
    expectSame([span]);
  });

  test('for the ids of remote spans in capital letters', () => {
    const parent = { traceId: 'ABCDEF0123456789'.repeat(2), spanId: 'ABCDEF0123456789', traceFlags: 1 };
    const span = spanOf('child', parent);
    span.addLink({ context: parent });
    expectSame([span]);
  });

  test('for a full batch', () => {
    const many = Array.from({ length: 512 }, (_, index) => {
      const span = spanOf(`span ${index}`);
      span.setAttribute('index', index);
      span.setAttribute('text', 'x'.repeat(index * 3));
      return span;
    });
    expectSame(many);
  });
});

test('a span that cannot be encoded takes no other with it', () => {
  const [before, sick, after] = [spanOf('before'), spanOf('sick'), spanOf('after')];
  before.setAttribute('a', 1);
  sick.setAttribute('a', 1);
  sick.addEvent(null as unknown as string);
  const batch = new SpanBatch(originOf('test'));
  for (const span of [before, sick, after]) batch.add(span);
  expect(Buffer.from(batch.encode())).toEqual(encoded([before, after], originOf('test')));
  expect(batch.count).toBe(2);
});
