import { describe, expect, test } from 'vitest';
import type { KeyVerdict, ProviderKeyUse } from '../../../src/core/account/key-verdict.ts';
import { rejectionsInARow, verdictOfRefusal } from '../../../src/core/account/key-verdict.ts';
import type { FailureKind } from '../../../src/core/outcome.ts';

test.each<[status: number, kind: FailureKind, code: string | null, verdict: KeyVerdict]>([
  [401, 'key-rejected', null, 'rejected'],
  [403, 'key-rejected', 'invalid_api_key_error', 'rejected'],
  [402, 'key-rejected', null, 'out_of_quota'],
  [400, 'key-rejected', null, 'out_of_quota'],
  [429, 'rate-limited', 'insufficient_quota', 'out_of_quota'],
  [429, 'rate-limited', null, 'out_of_quota'],
  [400, 'refused', 'API_KEY_INVALID', 'rejected'],
  [400, 'refused', 'invalid_api_key', 'rejected'],
  [400, 'refused', 'invalid_request', 'unreachable'],
  [404, 'not-found', null, 'unreachable'],
  [405, 'unexpected-status', 'api_key', 'unreachable'],
  [503, 'upstream-failed', null, 'unreachable'],
])('%i, read as %s with code %s, says %s', (status, kind, code, verdict) => {
  expect(verdictOfRefusal(status, kind, code)).toBe(verdict);
});

type Attempt = ProviderKeyUse['attempts'][number];

const tried = (attempt: Omit<Attempt, 'key_id'>, key_id = 'mine'): ProviderKeyUse => ({
  key_id: null,
  attempts: [{ ...attempt, key_id }],
});
const failed = (failure: FailureKind, status: number | null): Attempt => ({ end: 'failed', failure, status });
const rejected = tried(failed('key-rejected', 401));
const served: ProviderKeyUse = { key_id: 'mine', attempts: [{ end: 'served', status: 200 }] };
const neither: readonly [name: string, attempt: Attempt][] = [
  ['without an answer', failed('timed-out', null)],
  ['out of money', failed('key-rejected', 402)],
  ['out of their rate', failed('rate-limited', 429)],
  ['refused for the request', failed('refused', 400)],
  ['at a vendor out of order', failed('upstream-failed', 500)],
  ['that were cancelled', { end: 'cancelled', status: null }],
  ['that were passed over, or do not say how they ended', { status: 401 }],
];

describe('rejections in a row', () => {
  test.each<[name: string, newestFirst: readonly ProviderKeyUse[], count: number]>([
    ['none where there are no rows', [], 0],
    ['all, back to the last answer', [rejected, rejected, served, rejected], 2],
    ['all, back to an answer that was cut', [rejected, tried({ end: 'cut', status: 200 }), rejected], 1],
    ['403 as 401', [rejected, tried(failed('key-rejected', 403))], 2],
    ...neither.map(([name, attempt]): [string, readonly ProviderKeyUse[], number] => [
      `those around attempts ${name}`,
      [rejected, tried(attempt), rejected],
      2,
    ]),
    [
      "none of another key's",
      [tried(failed('key-rejected', 401), 'other'), { ...served, key_id: 'other' }, rejected],
      1,
    ],
    ['none after an answer', [served, rejected], 0],
  ])('count %s', (_name, newestFirst, count) => {
    expect(rejectionsInARow('mine', newestFirst)).toBe(count);
  });
});
