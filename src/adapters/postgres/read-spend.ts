import type pg from 'pg';
import { formatTimestampMicros, hourOf } from '../../core/timestamp.ts';
import { withDatabase } from './pool.ts';
import { ceilHour } from './read-sums.ts';
import { rollupsOf } from './rollup-sums.ts';

/** What one user spent in a period. */
export interface UserSpend {
  readonly userId: string;
  /** Null: the user was deleted. */
  readonly email: string | null;
  readonly requests: bigint;
  readonly successes: bigint;
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  readonly costMicroUsd: bigint;
}

export interface SpendPeriod {
  /** Microseconds since the epoch. */
  readonly fromMicros: bigint;
  /** Exclusive. */
  readonly toMicros: bigint;
}

/** Users in one answer; the rest spent no more than any of them. */
const maxSpenders = 10_000;

/** Of a period of whole UTC hours. */
export interface Spend extends SpendPeriod {
  readonly users: readonly UserSpend[];
  /** There are more users, who are not among them. */
  readonly isCut: boolean;
}

interface Row {
  readonly user_id: string;
  readonly email: string | null;
  readonly requests: string;
  readonly successes: string;
  readonly input_tokens: string;
  readonly output_tokens: string;
  readonly cost: string;
}

const summed = ['user_id', 'requests', 'successes', 'input_tokens', 'output_tokens', 'cost_micro_usd'].join(
  ', ',
);
const period = 'hour >= $1::timestamptz AND hour < $2::timestamptz';

/** What is summed up and what waits for it, read by one statement: every request once. */
const sums = `
  SELECT ${summed} FROM request_rollups WHERE ${period}
  UNION ALL SELECT ${summed} FROM (${rollupsOf('unsummed_requests')}) AS fresh WHERE ${period}`;

/**
 * All users with requests in the period, those who spent most first, from the hourly sums: its bounds are widened to
 * whole hours. Throws StoreAway.
 */
export async function readSpend(pool: pg.Pool, asked: SpendPeriod): Promise<Spend> {
  const fromMicros = hourOf(asked.fromMicros);
  const toMicros = ceilHour(asked.toMicros);
  const bounds = [fromMicros, toMicros].map(formatTimestampMicros);
  const { rows } = await withDatabase(() =>
    pool.query<Row>(
      `SELECT spent.*, u.email FROM (
         SELECT user_id, sum(requests)::text AS requests, sum(successes)::text AS successes,
           sum(input_tokens)::text AS input_tokens, sum(output_tokens)::text AS output_tokens,
           sum(cost_micro_usd)::text AS cost, sum(cost_micro_usd) AS rank
         FROM (${sums}) AS sums
         GROUP BY user_id ORDER BY rank DESC, user_id LIMIT ${maxSpenders + 1}
       ) spent LEFT JOIN users u ON u.id = spent.user_id
       ORDER BY spent.rank DESC, spent.user_id`,
      bounds,
    ),
  );
  const users = rows.slice(0, maxSpenders).map((row) => ({
    userId: row.user_id,
    email: row.email,
    requests: BigInt(row.requests),
    successes: BigInt(row.successes),
    inputTokens: BigInt(row.input_tokens),
    outputTokens: BigInt(row.output_tokens),
    costMicroUsd: BigInt(row.cost),
  }));
  return { fromMicros, toMicros, users, isCut: rows.length > users.length };
}
