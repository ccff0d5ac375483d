import type pg from 'pg';
import type { Periods, Spent } from '../../core/limits/budget.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import { withDatabase } from './pool.ts';

interface Row {
  readonly user_id: string;
  readonly day: string;
  readonly month: string;
}

/** What is summed up and what waits for it, by one statement: every request once. Days begin with an hour. */
const spentSql = `
  SELECT user_id, coalesce(sum(cost) FILTER (WHERE at >= $2::timestamptz), 0)::text AS day, sum(cost)::text AS month
  FROM (
    SELECT user_id, hour AS at, cost_micro_usd AS cost FROM request_rollups
    WHERE user_id = ANY ($1::uuid[]) AND hour >= $3::timestamptz
    UNION ALL
    SELECT user_id, created_at, cost_micro_usd FROM unsummed_requests
    WHERE user_id = ANY ($1::uuid[]) AND created_at >= $3::timestamptz
  ) AS costs
  GROUP BY user_id`;

/** What these users spent since the day and the month began; who spent nothing is left out. Throws StoreAway. */
export async function readSpent(
  pool: pg.Pool,
  userIds: readonly string[],
  { dayStartMs, monthStartMs }: Pick<Periods, 'dayStartMs' | 'monthStartMs'>,
): Promise<ReadonlyMap<string, Spent>> {
  const bounds = [dayStartMs, monthStartMs].map((ms) => formatTimestampMicros(ms * 1000));
  const { rows } = await withDatabase(() => pool.query<Row>(spentSql, [userIds, ...bounds]));
  return new Map(
    rows.map(({ user_id, day, month }) => [
      user_id,
      { dayMicroUsd: BigInt(day), monthMicroUsd: BigInt(month) },
    ]),
  );
}
