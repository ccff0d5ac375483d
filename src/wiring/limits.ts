import { Budgets } from '../limits/budgets.ts';
import { LimitGate } from '../limits/limit-gate.ts';
import { UserMinutes } from '../limits/user-minutes.ts';
import type { Foundation } from './foundation.ts';

/** What holds back users who are beyond their limits; to be closed before the stores. */
export function limitGateOn({ stores, clock, metrics, log }: Foundation): LimitGate {
  const { monotonicMs, wallMs } = clock;
  const minutes = new UserMinutes({
    monotonicMs,
    store: stores.sharedLimits,
    onDecided: (by) => metrics.http.limitDecided(by),
  });
  const { readSpent } = stores;
  const budgets =
    readSpent === null
      ? null
      : new Budgets({
          read: readSpent,
          isBehind: () => {
            const { away, spoolBytes } = stores.requestLog.stats();
            return away || spoolBytes > 0;
          },
          wallMs,
          monotonicMs,
          // One line a user, period and share on each replica: who it is stands in no metric.
          onReached: (userId, period, share) =>
            log.warn({ audit: 'budget_reached', user_id: userId, period, share_percent: share }, 'audit'),
        });
  const gate = new LimitGate(minutes, budgets);
  metrics.observe('gw_budget_users', () => {
    const reached = gate.reached();
    if (reached === null) return [];
    return Object.entries(reached).flatMap(([period, counts]) =>
      Object.entries(counts).map(([share, users]) => [{ period, share }, users] as const),
    );
  });
  return gate;
}
