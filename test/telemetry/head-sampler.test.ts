/** Our decisions beside those of the SDK's samplers. */
import { randomBytes } from 'node:crypto';
import { ROOT_CONTEXT, SamplingDecision } from '@opentelemetry/api';
import { TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace';
import { describe, expect, test } from 'vitest';
import { HeadSampler, readSampler } from '../../src/telemetry/head-sampler.ts';

const traceIds = [
  ...Array.from({ length: 2_000 }, () => randomBytes(16).toString('hex')),
  `${'0'.repeat(31)}1`,
  'f'.repeat(32),
  '0123456789abcdef'.repeat(2),
];

test.each([0, 1e-9, 0.0001, 0.01, 0.25, 0.5, 0.999, 1])(
  'a share of %d has the same traces as the SDK’s',
  (share) => {
    const [ours, theirs] = [new HeadSampler(share, true), new TraceIdRatioBasedSampler(share)];
    const differing = traceIds.filter((traceId) => {
      const { decision } = theirs.shouldSample(ROOT_CONTEXT, traceId);
      return ours.samples(traceId) !== (decision === SamplingDecision.RECORD_AND_SAMPLED);
    });
    expect(differing).toEqual([]);
  },
);

describe('the environment', () => {
  const shareOf = (sampler: HeadSampler) =>
    traceIds.filter((traceId) => sampler.samples(traceId)).length / traceIds.length;

  test.each([
    [undefined, undefined, 1, true],
    ['always_on', undefined, 1, false],
    ['always_off', undefined, 0, false],
    ['parentbased_always_on', undefined, 1, true],
    ['parentbased_always_off', undefined, 0, true],
    ['traceidratio', 0.5, 0.5, false],
    ['parentbased_traceidratio', 0.5, 0.5, true],
    ['parentbased_traceidratio', 0, 0, true],
  ])('%s, %s', (name, argument, share, followsCallers) => {
    const warnings: string[] = [];
    const sampler = readSampler(name, argument, (message) => warnings.push(message));
    expect(sampler.followsCallers).toBe(followsCallers);
    expect(Math.abs(shareOf(sampler) - share)).toBeLessThan(0.1);
    expect(warnings).toEqual([]);
  });

  test.each([
    ['jaeger_remote', undefined, true],
    ['parentbased_', 0.1, true],
    ['constructor', 0.1, true],
    ['traceidratio', undefined, false],
    ['traceidratio', 1.5, false],
    ['parentbased_traceidratio', -1, true],
    ['parentbased_traceidratio', Number.NaN, true],
  ])('%s, %s records everything, as the SDK does, and is warned of', (name, argument, followsCallers) => {
    const warnings: string[] = [];
    const sampler = readSampler(name, argument, (message) => warnings.push(message));
    expect([shareOf(sampler), sampler.followsCallers]).toEqual([1, followsCallers]);
    expect(warnings).toHaveLength(1);
  });
});
