import type pg from 'pg';
import type { Periods, Spent } from '../../core/limits/budget.ts';
import { budgetPeriods } from '../../core/limits/budget.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import { withDatabase } from './pool.ts';

type Row = { readonly user_id: string } & Readonly<Record<keyof Spent, string>>;

/** When each period began: `$1` are the users. */
const starts = budgetPeriods.map((_, index) => `$${index + 2}::timestamptz`);
const first = `least(${starts.join(', ')})`;
const sums = budgetPeriods.map(
  (period, index) => `coalesce(sum(cost) FILTER (WHERE at >= ${starts[index]}), 0)::text AS ${period}`,
);

/** What is summed up and what waits for it, by one statement: every request once. Periods begin with an hour. */
const spentSql = `
  SELECT user_id, ${sums.join(', ')}
  FROM (
    SELECT user_id, hour AS at, cost_micro_usd AS cost FROM request_rollups
    WHERE user_id = ANY ($1::uuid[]) AND hour >= ${first}
    UNION ALL
    SELECT user_id, created_at, cost_micro_usd FROM unsummed_requests
    WHERE user_id = ANY ($1::uuid[]) AND created_at >= ${first}
  ) AS costs
  GROUP BY user_id`;

/** What these users spent since the periods began; who spent nothing is left out. Throws StoreAway. */
export async function readSpent(
  pool: pg.Pool,
  userIds: readonly string[],
  periods: Periods,
): Promise<ReadonlyMap<string, Spent>> {
  const began = budgetPeriods.map((period) => formatTimestampMicros(periods[period].startMs * 1000));
  const { rows } = await withDatabase(() => pool.query<Row>(spentSql, [userIds, ...began]));
  const spentOf = (row: Row): Spent =>
    Object.fromEntries(budgetPeriods.map((period) => [period, BigInt(row[period])])) as Spent;
  return new Map(rows.map((row) => [row.user_id, spentOf(row)]));
}
