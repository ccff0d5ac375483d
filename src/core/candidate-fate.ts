import type { SkipReason } from './plan.ts';
import { skipReasons } from './plan.ts';
import type { SettledRequest, Target } from './settled-request.ts';

/** What became of a candidate of the tier: `not_reached`: another one, or the cache, had answered before. */
export const candidateFates = ['tried', ...skipReasons, 'not_reached'] as const;
export type CandidateFate = 'tried' | SkipReason | 'not_reached';

type Considered = Pick<SettledRequest, 'skipped' | 'candidates'>;

/** Of one candidate; one that was moved back, and tried in the end, was tried. */
export function candidateFate(target: Target, { skipped, candidates }: Considered): CandidateFate {
  const isIt = ({ provider, model }: Target): boolean =>
    provider === target.provider && model === target.model;
  if (candidates.some((record) => record.kind === 'tried' && isIt(record.candidate))) return 'tried';
  return skipped.find(isIt)?.reason ?? 'not_reached';
}
