import type { Refusal } from './refusal.ts';
import type { Limits } from './user-limits.ts';

/** The periods that a moment lies in: calendar day and month in UTC. Milliseconds since the epoch. */
export interface Periods {
  readonly dayStartMs: number;
  readonly dayEndMs: number;
  readonly monthStartMs: number;
  readonly monthEndMs: number;
}

export function periodsAt(wallMs: number): Periods {
  const date = new Date(wallMs);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  return {
    dayStartMs: Date.UTC(year, month, day),
    dayEndMs: Date.UTC(year, month, day + 1),
    monthStartMs: Date.UTC(year, month, 1),
    monthEndMs: Date.UTC(year, month + 1, 1),
  };
}

/** What a user spent in the current day and month. */
export interface Spent {
  readonly dayMicroUsd: bigint;
  readonly monthMicroUsd: bigint;
}

/** Whether any budget holds. */
export function hasBudget({ dayMicroUsd, monthMicroUsd }: Limits): boolean {
  return dayMicroUsd !== null || monthMicroUsd !== null;
}

/** What keeps one more request out; null: nothing. The month first, since it lasts longer. */
export function budgetRefusal(
  limits: Limits,
  spent: Spent,
  periods: Periods,
  wallMs: number,
): Refusal | null {
  const { dayMicroUsd, monthMicroUsd } = limits;
  if (monthMicroUsd !== null && spent.monthMicroUsd >= monthMicroUsd) {
    return { limit: 'budget_month', most: monthMicroUsd, waitMs: periods.monthEndMs - wallMs };
  }
  if (dayMicroUsd !== null && spent.dayMicroUsd >= dayMicroUsd) {
    return { limit: 'budget_day', most: dayMicroUsd, waitMs: periods.dayEndMs - wallMs };
  }
  return null;
}

export const budgetPeriods = ['day', 'month'] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** Shares of a budget, in percent, that are told to operators when they are reached. */
export const toldShares = [80, 100] as const;
export type ToldShare = (typeof toldShares)[number];

/** The highest of `toldShares` that is reached; 0: none, or no budget. */
export function reachedShare(most: bigint | null, spent: bigint): ToldShare | 0 {
  if (most === null) return 0;
  if (spent >= most) return 100;
  return spent * 100n >= most * 80n ? 80 : 0;
}
