/**
 * Our encoding of spans beside the SDK's: the same bytes, whatever the span. Spans come from the SDK's own tracer, with
 * its limits, so that what it lets through is what is compared.
 */
import type { Link, SpanContext, SpanStatusCode } from '@opentelemetry/api';
import { createTraceState, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { AlwaysOnSampler, TracerProvider } from '@opentelemetry/sdk-trace';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SpanBatch } from '../../src/telemetry/span-batches.ts';
import type { ReadableSpan } from '../../src/telemetry/span-bytes.ts';

type Limits = NonNullable<NonNullable<ConstructorParameters<typeof TracerProvider>[0]>['spanLimits']>;
type Scope = readonly [name: string, version: string | undefined, schemaUrl: string | undefined];
type Make = (tracers: readonly ReturnType<TracerProvider['getTracer']>[]) => void;

function spansOf(
  make: Make,
  scopes: readonly Scope[] = [['test', undefined, undefined]],
  spanLimits: Limits = {},
) {
  const ended: ReadableSpan[] = [];
  const provider = new TracerProvider({
    spanLimits,
    sampler: new AlwaysOnSampler(),
    spanProcessors: [
      {
        onStart: () => {},
        onEnd: (span) => ended.push(span),
        forceFlush: async () => {},
        shutdown: async () => {},
      },
    ],
  });
  make(
    scopes.map(([name, version, schemaUrl]) =>
      provider.getTracer(name, version, schemaUrl === undefined ? {} : { schemaUrl }),
    ),
  );
  return ended;
}

function encoded(spans: readonly ReadableSpan[]): Buffer {
  const [first] = spans;
  if (first === undefined) throw new Error('no span has ended');
  const batch = new SpanBatch(first.resource);
  for (const span of spans) batch.add(span);
  expect(batch.count).toBe(spans.length);
  return Buffer.from(batch.encode());
}

function expectSame(spans: readonly ReadableSpan[]): void {
  const reference = ProtobufTraceSerializer.serializeRequest([...spans]);
  const bytes = encoded(spans);
  // Compared by itself first: a difference of long buffers is told too slowly.
  if (Buffer.compare(bytes, Buffer.from(reference ?? [])) === 0) return;
  expect(bytes.toString('hex')).toBe(Buffer.from(reference ?? []).toString('hex'));
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
const primitive = fc.oneof(text, number, fc.boolean());
/** What instrumentations may set, and what they set against the types. */
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    primitive,
    fc.uint8Array({ maxLength: 300 }),
    fc.constantFrom(null, undefined),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(text, tie('value'), { maxKeys: 4 }),
    fc.array(fc.string(), { maxLength: 4 }),
  ),
}));
const key = fc.oneof(
  fc.string({ maxLength: 30 }),
  text,
  fc.constantFrom('http.route', 'gen_ai.usage.input_tokens'),
);
const attributes = fc.dictionary(key, value, { maxKeys: 12 });
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
const time = fc.tuple(fc.integer({ min: 0, max: 2 ** 32 }), fc.integer({ min: 0, max: 999_999_999 }));
const link = fc.record({ context: spanContext, attributes }, { requiredKeys: ['context'] });
const plan = fc.record({
  scope: fc.nat({ max: 2 }),
  name: text,
  kind: fc.integer({ min: 0, max: 4 }),
  parent: fc.option(spanContext, { nil: undefined }),
  attributes,
  later: attributes,
  links: fc.array(link, { maxLength: 4 }),
  events: fc.array(fc.record({ name: text, attributes: fc.option(attributes, { nil: undefined }), time }), {
    maxLength: 5,
  }),
  status: fc.record({ code: fc.constantFrom<SpanStatusCode>(0, 1, 2), message: text }),
  start: time,
  lasts: fc.nat({ max: 2 ** 31 }),
});
const limits: fc.Arbitrary<Limits> = fc.record({
  attributeCountLimit: fc.constantFrom(2, 5, 128),
  attributeValueLengthLimit: fc.constantFrom(3, 100, Number.POSITIVE_INFINITY),
  eventCountLimit: fc.constantFrom(0, 1, 128),
  linkCountLimit: fc.constantFrom(0, 1, 128),
  attributePerEventCountLimit: fc.constantFrom(1, 128),
  attributePerLinkCountLimit: fc.constantFrom(1, 128),
});
const scopes: readonly Scope[] = [
  ['model-gateway', undefined, 'https://opentelemetry.io/schemas/1.41.0'],
  ['@opentelemetry/instrumentation-pg', '0.77.0', undefined],
  ['ünï', '1', ''],
];

describe('the bytes of spans are those of the SDK’s serializer', () => {
  test('for any spans', () => {
    fc.assert(
      fc.property(fc.array(plan, { minLength: 1, maxLength: 6 }), limits, (plans, spanLimits) => {
        const spans = spansOf(
          (tracers) => {
            for (const made of plans) {
              const parent =
                made.parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, made.parent);
              const links = made.links as Link[];
              const [first, ...rest] = links;
              const options = {
                kind: made.kind,
                attributes: made.attributes as never,
                startTime: made.start,
                ...(first === undefined ? {} : { links: [first] }),
              };
              const span = tracers[made.scope]?.startSpan(made.name, options, parent);
              span?.setAttributes(made.later as never).addLinks(rest);
              for (const event of made.events)
                span?.addEvent(event.name, event.attributes as never, event.time);
              span?.setStatus(made.status);
              span?.end([made.start[0] + made.lasts, made.start[1]]);
            }
          },
          scopes,
          spanLimits,
        );
        expectSame(spans);
      }),
      { numRuns: 400 },
    );
  });

  test('for times now, and for a span that is as bare as can be', () => {
    expectSame(spansOf(([tracer]) => tracer?.startSpan('', {}, ROOT_CONTEXT).end()));
  });

  test('for what a span inherits', () => {
    expectSame(
      spansOf(([tracer]) => {
        const span = tracer?.startSpan('span', { attributes: { own: 1 } });
        span?.setAttribute('__proto__', ['inherited']).end();
      }),
    );
  });

  test('for the ids of remote spans in capital letters', () => {
    const parent = { traceId: 'ABCDEF0123456789'.repeat(2), spanId: 'ABCDEF0123456789', traceFlags: 1 };
    const context = trace.setSpanContext(ROOT_CONTEXT, parent);
    expectSame(
      spansOf(([tracer]) => tracer?.startSpan('child', { links: [{ context: parent }] }, context).end()),
    );
  });

  test('for a full batch', () => {
    const many = spansOf(([tracer]) => {
      for (let index = 0; index < 512; index += 1) {
        const span = tracer?.startSpan(`span ${index}`, {
          attributes: { index, text: 'x'.repeat(index * 3) },
        });
        span?.end();
      }
    });
    expectSame(many);
  });
});

test('a span that cannot be encoded takes no other with it', () => {
  const spans = spansOf(([tracer]) => {
    tracer?.startSpan('before', { attributes: { a: 1 } }).end();
    tracer?.startSpan('after').end();
  });
  const [before, after] = spans;
  if (before === undefined || after === undefined) throw new Error('no spans');
  const batch = new SpanBatch(before.resource);
  batch.add(before);
  const sick = Object.create(after, { name: { value: null } }) as ReadableSpan;
  batch.add(sick);
  batch.add(after);
  expect(Buffer.from(batch.encode())).toEqual(encoded(spans));
  expect(batch.count).toBe(2);
});
