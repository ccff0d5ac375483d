/** Spans of our own beside those of the SDK's tracer with the sampler of the same name: whose, in which trace, recorded. */
import type { SpanContext } from '@opentelemetry/api';
import { createTraceState, TraceFlags } from '@opentelemetry/api';
import type { Sampler } from '@opentelemetry/sdk-trace';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import { readSettings } from '../../src/settings.ts';
import { HeadSampler } from '../../src/telemetry/head-sampler.ts';
import { OwnSpans } from '../../src/telemetry/own-spans.ts';
import { RandomIds } from '../../src/telemetry/random-ids.ts';
import { SdkSpans } from '../../src/telemetry/sdk-spans.ts';
import type { SpanMaker } from '../../src/telemetry/tracing.ts';

const ratio = 0.5;
const samplers: readonly (readonly [string, Sampler])[] = [
  ['always_on', new AlwaysOnSampler()],
  ['always_off', new AlwaysOffSampler()],
  ['traceidratio', new TraceIdRatioBasedSampler(ratio)],
  ['parentbased_always_on', new ParentBasedSampler({ root: new AlwaysOnSampler() })],
  ['parentbased_always_off', new ParentBasedSampler({ root: new AlwaysOffSampler() })],
  ['parentbased_traceidratio', new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) })],
];
const callers: readonly SpanContext[] = ['1', 'f'].flatMap((digit) =>
  [TraceFlags.NONE, TraceFlags.SAMPLED].flatMap((traceFlags) => {
    const traceId = `${'0'.repeat(24)}${digit.repeat(8)}`;
    const caller = { traceId, spanId: digit.repeat(16), traceFlags, isRemote: true };
    return [caller, { ...caller, traceState: createTraceState('vendor=1,other=2') }];
  }),
);

function makers(name: string, sampler: Sampler, isTold = false): { ours: SpanMaker; theirs: SpanMaker } {
  const ids = new RandomIds();
  const { tracing } = readSettings({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: String(ratio) });
  const tracer = new TracerProvider({ sampler }).getTracer('test');
  return {
    ours: new OwnSpans(new HeadSampler(tracing.sampler), ids, isTold, () => {}),
    theirs: new SdkSpans(tracer, ids, isTold, false),
  };
}

/** What can be told of a request's span, and of its attempt's where it is recorded, but for random ids. */
function tell(maker: SpanMaker, caller: SpanContext) {
  const request = maker.startRequest('request', caller).spanContext();
  const described = ({ traceId, traceFlags, traceState, spanId }: SpanContext, parentId: string) => ({
    traceId,
    traceFlags,
    traceState: traceState?.serialize(),
    isNew: spanId !== parentId && /^[0-9a-f]{16}$/.test(spanId),
  });
  const attempt =
    request.traceFlags === TraceFlags.SAMPLED ? maker.startAttempt('attempt', request).spanContext() : null;
  return [described(request, caller.spanId), attempt === null ? null : described(attempt, request.spanId)];
}

test.each(samplers)('below a caller’s, with the sampler %s', (name, sampler) => {
  const { ours, theirs } = makers(name, sampler);
  for (const caller of callers) expect(tell(ours, caller)).toEqual(tell(theirs, caller));
});

test.each(samplers)('of a request without a caller, with the sampler %s', (name, sampler) => {
  const rounds = 2_000;
  const started = (maker: SpanMaker): SpanContext[] => {
    const spans = Array.from({ length: rounds }, () => maker.startTrace('request'));
    const contexts = spans.flatMap((span) => (span === null ? [] : [span.spanContext()]));
    expect(new Set(contexts.map(({ traceId }) => traceId)).size).toBe(contexts.length);
    return contexts;
  };
  const recorded = (contexts: readonly SpanContext[]) =>
    contexts.filter(({ traceFlags }) => traceFlags === TraceFlags.SAMPLED).length / rounds;
  const told = makers(name, sampler, true);
  const [ours, theirs] = [started(told.ours), started(told.theirs)];
  expect([ours.length, theirs.length]).toEqual([rounds, rounds]);
  expect(Math.abs(recorded(ours) - recorded(theirs))).toBeLessThan(0.1);
  // Where nobody is told of a trace, those that are not recorded are none.
  const untold = makers(name, sampler);
  for (const quiet of [started(untold.ours), started(untold.theirs)]) {
    expect(recorded(quiet)).toBe(quiet.length / rounds);
    expect(Math.abs(recorded(quiet) - recorded(theirs))).toBeLessThan(0.1);
  }
});

test('below a caller’s that we have decided to record, whatever its trace id', () => {
  for (const [name, sampler] of samplers) {
    const { ours } = makers(name, sampler);
    for (const caller of callers) {
      const { traceId, traceFlags } = ours.startRequest('request', caller, { isDecided: true }).spanContext();
      expect([traceId, traceFlags]).toEqual([caller.traceId, TraceFlags.SAMPLED]);
    }
  }
});
