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

const tried = (reason: string, key_id = 'mine'): ProviderKeyUse => ({
  key_id: null,
  attempts: [{ reason, key_id }],
});
const rejected = tried('key-rejected: no');
const served: ProviderKeyUse = { key_id: 'mine', attempts: [{ reason: 'served' }] };

describe('rejections in a row', () => {
  test.each<[name: string, newestFirst: readonly ProviderKeyUse[], count: number]>([
    ['none where there are no rows', [], 0],
    ['all, back to the last answer', [rejected, rejected, served, rejected], 2],
    ['all, back to an answer that was cut', [rejected, tried('cut: reset'), rejected], 1],
    ['those around attempts without an answer', [rejected, tried('timed-out: late'), rejected], 2],
    [
      "none of another key's",
      [tried('key-rejected: no', 'other'), { ...served, key_id: 'other' }, rejected],
      1,
    ],
    ['none after an answer', [served, rejected], 0],
  ])('count %s', (_name, newestFirst, count) => {
    expect(rejectionsInARow('mine', newestFirst)).toBe(count);
  });
});
