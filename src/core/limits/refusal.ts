import { formatMicroUsd } from '../answer/cost.ts';
import type { ErrorCode } from '../error-codes.ts';
import type { GatewayErrorDetails } from '../errors.ts';
import { noRetry, RateLimitError } from '../errors.ts';
import type { RefusingLimit } from './limit-table.ts';
import { budgetRows } from './limit-table.ts';

/** Why a request of a user is not admitted. */
export interface Refusal {
  readonly limit: RefusingLimit;
  /** The limit: a number, of budgets micro-dollars. */
  readonly most: number | bigint;
  /** Until the same request may be admitted; milliseconds. */
  readonly waitMs: number;
}

/** Clients that sleep as long as they are told should not do so for the rest of a month: the budget may be raised. */
const longestWaitSeconds = 86_400;

const waitSeconds = ({ waitMs }: Refusal): number =>
  Math.min(longestWaitSeconds, Math.max(1, Math.ceil(waitMs / 1000)));

function words(refusal: Refusal): readonly [code: ErrorCode<'rate_limit_error'>, message: string] {
  const { limit, most } = refusal;
  switch (limit) {
    case 'requests':
    case 'tokens':
      return ['rate_limit_exceeded', `Your limit of ${most} ${limit} per minute is reached; try again.`];
    case 'streams':
      return ['rate_limit_exceeded', `Your limit of ${most} streams at once is reached; end one of them.`];
    case 'budget_day':
      return [
        'daily_budget_exceeded',
        `Your budget of $${formatMicroUsd(BigInt(most))} a day (UTC) is spent.`,
      ];
    case 'budget_month':
      return [
        'monthly_budget_exceeded',
        `Your budget of $${formatMicroUsd(BigInt(most))} a month (UTC) is spent.`,
      ];
  }
}

/** 429 of a limit. A repeat soon helps with all but budgets, of which SDKs are told so. */
export function limitError(
  refusal: Refusal,
  headers: NonNullable<GatewayErrorDetails['headers']>,
): RateLimitError {
  const [code, message] = words(refusal);
  const isBudget = budgetRows.some((row) => row.refusal === refusal.limit);
  return new RateLimitError(message, {
    code,
    headers: { ...headers, 'retry-after': String(waitSeconds(refusal)), ...(isBudget && noRetry) },
  });
}
