import { maxKeyChecksPerMinute } from '../../core/account/account-limits.ts';
import { RateLimitError } from '../../core/errors.ts';
import type { SharedCount } from '../../limits/ports.ts';
import { WindowCounter } from '../../limits/window-counter.ts';

function refuseFor(waitSeconds: number): void {
  if (waitSeconds <= 0) return;
  throw new RateLimitError(`Keys may be checked ${maxKeyChecksPerMinute} times a minute; try again later.`, {
    code: 'too_many_key_checks',
    headers: { 'retry-after': String(waitSeconds) },
  });
}

/**
 * Counts one check of the user's. Throws RateLimitError, or promises to where all replicas count together. This replica
 * counts in any case: that is all there is while the store is away.
 */
export function keyCheckLimit(
  monotonicMs: () => number,
  shared: SharedCount | null,
): (userId: string) => void | Promise<void> {
  const perUser = new WindowCounter(maxKeyChecksPerMinute);
  return (userId) => {
    refuseFor(perUser.take(userId, monotonicMs()));
    if (shared === null) return;
    const limits = [{ name: userId, limit: maxKeyChecksPerMinute }];
    return shared(limits).then((waitMs) => refuseFor(Math.ceil((waitMs ?? 0) / 1000)));
  };
}
