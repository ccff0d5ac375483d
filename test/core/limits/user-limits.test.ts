import { describe, expect, test } from 'vitest';
import type { Limits, UserLimits } from '../../../src/core/limits/user-limits.ts';
import {
  compileDefaults,
  compileExceptions,
  limitsOf,
  readUserLimits,
  userLimitsSchema,
} from '../../../src/core/limits/user-limits.ts';

const none: Limits = {
  requestsPerMinute: null,
  tokensPerMinute: null,
  streams: null,
  dayMicroUsd: null,
  monthMicroUsd: null,
};

describe('what holds for a user', () => {
  test.each<[string, Parameters<typeof compileDefaults>[0], UserLimits | null, Limits | null]>([
    ['nothing', {}, null, null],
    ['what the tables say', { requests_per_minute: 60 }, null, { ...none, requestsPerMinute: 60 }],
    [
      'an exception beside it',
      { streams: 2 },
      { tokens_per_minute: 9 },
      { ...none, streams: 2, tokensPerMinute: 9 },
    ],
    ['an exception instead', { streams: 2 }, { streams: 5 }, { ...none, streams: 5 }],
    ['nothing, by exception', { streams: 2 }, { streams: null }, null],
    ['an exception without any tables', {}, { streams: 1 }, { ...none, streams: 1 }],
  ])('%s', (_name, tables, exceptions, expected) => {
    expect(limitsOf(compileDefaults(tables), compileExceptions(exceptions))).toEqual(expected);
  });
});

describe('a budget is exact', () => {
  test.each<[string | number, bigint]>([
    ['2.50', 2_500_000n],
    ['0.000001', 1n],
    [0.1, 100_000n],
    [25, 25_000_000n],
    ['999999999.999999', 999_999_999_999_999n],
  ])('%s dollars', (value, microUsd) => {
    expect(userLimitsSchema.safeParse({ budget_usd_per_day: value }).success).toBe(true);
    expect(compileDefaults({ budget_usd_per_day: value })?.dayMicroUsd).toBe(microUsd);
    expect(compileDefaults({ budget_usd_per_month: value })?.monthMicroUsd).toBe(microUsd);
  });

  test.each([
    ['0'],
    [0],
    ['1e3'],
    [1e-7],
    [-1],
    ['-1'],
    ['1.0000001'],
    ['1000000000'],
    ['$5'],
    [''],
    [Number.NaN],
  ])('%s is none', (value) => {
    expect(userLimitsSchema.safeParse({ budget_usd_per_day: value }).success).toBe(false);
  });
});

test.each([
  [{ streams: 0 }],
  [{ streams: 1.5 }],
  [{ requests_per_minute: 2_000_000_000 }],
  [{ tokens_per_minute: '60' }],
  [{ unknown: 1 }],
])('%j is no exception', (value) => {
  expect(userLimitsSchema.safeParse(value).success).toBe(false);
});

describe('a row of a user', () => {
  test.each([
    ['without exceptions', null, null],
    ['with an empty object', {}, null],
    ['with exceptions', { streams: 2, requests_per_minute: null }, { streams: 2, requests_per_minute: null }],
    ['of a newer release', { images: 3, streams: 2 }, { streams: 2 }],
    ['that somebody broke', { streams: 'many', tokens_per_minute: 5 }, { tokens_per_minute: 5 }],
    ['that holds no object', 'x', null],
  ])('%s', (_name, stored, expected) => {
    expect(readUserLimits(stored)).toEqual(expected);
  });
});
