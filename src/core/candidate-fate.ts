import { skipReasons } from './plan.ts';
import type { SettledRequest, Target } from './settled-request.ts';

/** What became of a candidate of the tier: `not_reached`: another one, or the cache, had answered before. */
export const candidateFates = ['tried', ...skipReasons, 'not_reached'] as const;
export type CandidateFate = (typeof candidateFates)[number];

type Considered = Pick<SettledRequest, 'skipped' | 'candidates'>;

/** Of one candidate; one that was moved back, and tried in the end, was tried. */
export function candidateFate(
  { provider, model }: Target,
  { skipped, candidates }: Considered,
): CandidateFate {
  for (const record of candidates) {
    if (record.kind !== 'tried') continue;
    const { candidate } = record;
    if (candidate.provider === provider && candidate.model === model) return 'tried';
  }
  for (const skip of skipped) {
    if (skip.provider === provider && skip.model === model) return skip.reason;
  }
  return 'not_reached';
}
