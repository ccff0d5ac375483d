import { describe, expect, test } from 'vitest';
import { durationText, minuteRefusal, rateLimitHeaders } from '../../../src/core/limits/minute.ts';
import type { Limits } from '../../../src/core/limits/user-limits.ts';

const unlimited: Limits = {
  requestsPerMinute: null,
  tokensPerMinute: null,
  streams: null,
  dayMicroUsd: null,
  monthMicroUsd: null,
};
const counts = { requests: 0, tokens: 0, streams: 0, leftMs: 12_345 };

describe('one more request', () => {
  test.each<[string, Partial<Limits>, Partial<typeof counts>, boolean, string | null]>([
    ['without limits', {}, { requests: 1e6, tokens: 1e6, streams: 1e6 }, true, null],
    [
      'below all',
      { requestsPerMinute: 2, tokensPerMinute: 9, streams: 1 },
      { requests: 1, tokens: 8 },
      true,
      null,
    ],
    ['beyond the requests', { requestsPerMinute: 2 }, { requests: 2 }, false, 'requests'],
    ['whose predecessors took all tokens', { tokensPerMinute: 9 }, { tokens: 9 }, false, 'tokens'],
    ['whose predecessors took more', { tokensPerMinute: 9 }, { tokens: 900 }, false, 'tokens'],
    ['beyond the streams', { streams: 1 }, { streams: 1 }, true, 'streams'],
    ['that is no stream', { streams: 1 }, { streams: 1 }, false, null],
    [
      'beyond two of them',
      { requestsPerMinute: 1, tokensPerMinute: 1 },
      { requests: 1, tokens: 1 },
      false,
      'requests',
    ],
  ])('%s', (_name, limits, used, isStream, expected) => {
    const refusal = minuteRefusal({ ...unlimited, ...limits }, { ...counts, ...used }, isStream);
    expect(refusal?.limit ?? null).toBe(expected);
    if (expected !== null && expected !== 'streams') expect(refusal?.waitMs).toBe(12_345);
  });
});

test.each([
  [0, '0ms'],
  [0.2, '1ms'],
  [250, '250ms'],
  [999.5, '1000ms'],
  [1000, '1s'],
  [1001, '2s'],
  [59_001, '1m0s'],
  [60_000, '1m0s'],
  [360_000, '6m0s'],
])('%d ms are %s', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

describe('headers', () => {
  test('say what is left of the limits there are', () => {
    const limits = { ...unlimited, requestsPerMinute: 60, tokensPerMinute: 1000, streams: 3 };
    expect(rateLimitHeaders(limits, { ...counts, requests: 1, tokens: 1500 })).toEqual({
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-reset-requests': '13s',
      'x-ratelimit-limit-tokens': '1000',
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '13s',
    });
    expect(rateLimitHeaders(unlimited, counts)).toEqual({});
  });
});
