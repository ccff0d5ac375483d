import type { LimitRowOf } from './limit-table.ts';
import { budgetRows } from './limit-table.ts';
import type { Refusal } from './refusal.ts';
import type { Limits } from './user-limits.ts';

/** What budgets are of. A further period is a row of the table of limits and what the compiler asks for. */
export type BudgetPeriod = LimitRowOf<'budget'>['period'];
export const budgetPeriods: readonly BudgetPeriod[] = budgetRows.map(({ period }) => period);
export type ByPeriod<Value> = Readonly<Record<BudgetPeriod, Value>>;

/** The period that a moment lies in. Milliseconds since the epoch; `endMs` is exclusive. */
export interface Span {
  readonly startMs: number;
  readonly endMs: number;
}
export type Periods = ByPeriod<Span>;

/** Calendar day and month in UTC. */
export function periodsAt(wallMs: number): Periods {
  const date = new Date(wallMs);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  return {
    day: { startMs: Date.UTC(year, month, day), endMs: Date.UTC(year, month, day + 1) },
    month: { startMs: Date.UTC(year, month, 1), endMs: Date.UTC(year, month + 1, 1) },
  };
}

/** What a user spent in the current periods, in micro-dollars. */
export type Spent = ByPeriod<bigint>;

const rowOf = Object.fromEntries(budgetRows.map((row) => [row.period, row])) as ByPeriod<
  LimitRowOf<'budget'>
>;

/** In micro-dollars; null: there is none. */
export const budgetOf = (limits: Limits, period: BudgetPeriod): bigint | null => limits[rowOf[period].field];

/** Whether any budget holds. */
export function hasBudget(limits: Limits): boolean {
  return budgetRows.some(({ field }) => limits[field] !== null);
}

/** What keeps one more request out; null: nothing. Of several budgets the one that does so for longest. */
export function budgetRefusal(
  limits: Limits,
  spent: Spent,
  periods: Periods,
  wallMs: number,
): Refusal | null {
  let refusal: Refusal | null = null;
  for (const { field, period, refusal: limit } of budgetRows) {
    const most = limits[field];
    const waitMs = periods[period].endMs - wallMs;
    if (most === null || spent[period] < most || waitMs < (refusal?.waitMs ?? 0)) continue;
    refusal = { limit, most, waitMs };
  }
  return refusal;
}

/** Shares of a budget, in percent and rising, that are told to operators when they are reached. */
export const toldShares = [80, 100] as const;
export type ToldShare = (typeof toldShares)[number];

/** The highest of `toldShares` that is reached; 0: none, or no budget. */
export function reachedShare(most: bigint | null, spent: bigint): ToldShare | 0 {
  if (most === null) return 0;
  return toldShares.findLast((share) => spent * 100n >= most * BigInt(share)) ?? 0;
}
