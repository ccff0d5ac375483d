import { describe, expect, test } from 'vitest';
import { budgetRefusal, periodsAt, reachedShare } from '../../../src/core/limits/budget.ts';
import type { Refusal } from '../../../src/core/limits/refusal.ts';
import { limitError } from '../../../src/core/limits/refusal.ts';

const at = (text: string): number => new Date(text).getTime();

test.each([
  ['2026-11-22T16:00:00Z', '2026-11-22', '2026-11-23', '2026-11-01', '2026-12-01'],
  ['2026-12-31T23:59:59.999Z', '2026-12-31', '2027-01-01', '2026-12-01', '2027-01-01'],
  ['2028-02-29T00:00:00Z', '2028-02-29', '2028-03-01', '2028-02-01', '2028-03-01'],
])('%s lies in a day and a month of UTC', (moment, ...[day, dayEnd, month, monthEnd]) => {
  expect(periodsAt(at(moment))).toEqual({
    day: { startMs: at(day), endMs: at(dayEnd) },
    month: { startMs: at(month), endMs: at(monthEnd) },
  });
});

describe('a budget', () => {
  const nowMs = at('2026-11-22T23:59:50Z');
  const none = { requestsPerMinute: null, tokensPerMinute: null, streams: null };
  test.each<[string, bigint | null, bigint | null, bigint, bigint, Refusal | null]>([
    ['that is not spent', 5n, 9n, 4n, 8n, null],
    ['of the day', 5n, 9n, 5n, 8n, { limit: 'budget_day', most: 5n, waitMs: 10_000 }],
    ['of the month', null, 9n, 0n, 9n, { limit: 'budget_month', most: 9n, waitMs: at('2026-12-01') - nowMs }],
    ['of both', 5n, 9n, 6n, 10n, { limit: 'budget_month', most: 9n, waitMs: at('2026-12-01') - nowMs }],
    ['that is none', null, null, 6n, 10n, null],
  ])('%s', (_name, dayMicroUsd, monthMicroUsd, day, month, expected) => {
    const limits = { ...none, dayMicroUsd, monthMicroUsd };
    expect(budgetRefusal(limits, { day, month }, periodsAt(nowMs), nowMs)).toEqual(expected);
  });

  test.each([
    [null, 100n, 0],
    [100n, 79n, 0],
    [100n, 80n, 80],
    [100n, 99n, 80],
    [100n, 100n, 100],
    [3n, 2n, 0],
  ] as const)('of %s of which %s is spent: %s %% are told', (most, spent, share) => {
    expect(reachedShare(most, spent)).toBe(share);
  });
});

describe('a refusal', () => {
  test.each<[Refusal, string, string, Record<string, string>]>([
    [
      { limit: 'requests', most: 60, waitMs: 12_001 },
      'rate_limit_exceeded',
      'Your limit of 60 requests per minute is reached; try again.',
      { 'retry-after': '13' },
    ],
    [
      { limit: 'tokens', most: 900, waitMs: 0 },
      'rate_limit_exceeded',
      'Your limit of 900 tokens per minute is reached; try again.',
      { 'retry-after': '1' },
    ],
    [
      { limit: 'streams', most: 2, waitMs: 1000 },
      'rate_limit_exceeded',
      'Your limit of 2 streams at once is reached; end one of them.',
      { 'retry-after': '1' },
    ],
    [
      { limit: 'budget_day', most: 2_500_000n, waitMs: 10_000 },
      'daily_budget_exceeded',
      'Your budget of $2.500000 a day (UTC) is spent.',
      { 'retry-after': '10', 'x-should-retry': 'false' },
    ],
    [
      { limit: 'budget_month', most: 1n, waitMs: 20 * 86_400_000 },
      'monthly_budget_exceeded',
      'Your budget of $0.000001 a month (UTC) is spent.',
      { 'retry-after': '86400', 'x-should-retry': 'false' },
    ],
  ])('%o is %s', (refusal, code, message, headers) => {
    const error = limitError(refusal, { 'x-ratelimit-limit-requests': '60' });
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error', param: null, code, message });
    expect(error.headers).toEqual({ 'x-ratelimit-limit-requests': '60', ...headers });
  });
});
