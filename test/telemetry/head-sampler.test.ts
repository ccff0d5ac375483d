/** Our decisions beside those of the SDK's samplers. */
import { randomBytes } from 'node:crypto';
import { ROOT_CONTEXT, SamplingDecision } from '@opentelemetry/api';
import { TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import { foldOf, HeadSampler } from '../../src/telemetry/head-sampler.ts';

const traceIds = [
  ...Array.from({ length: 2_000 }, () => randomBytes(16).toString('hex')),
  `${'0'.repeat(31)}1`,
  'f'.repeat(32),
  '0123456789abcdef'.repeat(2),
];

test.each([0, 1e-9, 0.0001, 0.01, 0.25, 0.5, 0.999, 1])(
  'a share of %d has the same traces as the SDK’s',
  (share) => {
    const [ours, theirs] = [
      new HeadSampler({ share, followsCallers: true }),
      new TraceIdRatioBasedSampler(share),
    ];
    const differing = traceIds.filter((traceId) => {
      const { decision } = theirs.shouldSample(ROOT_CONTEXT, traceId);
      return ours.samples(foldOf(traceId)) !== (decision === SamplingDecision.RECORD_AND_SAMPLED);
    });
    expect(differing).toEqual([]);
  },
);
