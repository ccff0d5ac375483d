import type { AttemptRow } from '../attempt-record.ts';
import type { FailureKind } from '../outcome.ts';

/**
 * What a vendor makes of a stored key. `out_of_quota`: it knows the key and serves it nothing now, for want of money or
 * for its rate. `unreachable`: there was no answer to the question, so nothing is known of the key.
 */
export const keyVerdicts = ['valid', 'rejected', 'out_of_quota', 'unreachable'] as const;
export type KeyVerdict = (typeof keyVerdicts)[number];

/** How some servers name a bad key with the status of a bad request. */
const keyCode = /api[_-]?key/i;

/** What a refusal of the question says of the key. `kind` and `code` as the vendor's translation reads them. */
export function verdictOfRefusal(status: number, kind: FailureKind, code: string | null): KeyVerdict {
  if (kind === 'rate-limited') return 'out_of_quota';
  // 402, and account trouble that has the status of a bad request.
  if (kind === 'key-rejected') return status === 401 || status === 403 ? 'rejected' : 'out_of_quota';
  return kind === 'refused' && code !== null && keyCode.test(code) ? 'rejected' : 'unreachable';
}

/** As much of a log row as tells of its keys. */
export interface ProviderKeyUse {
  /** The key that served. */
  readonly key_id: string | null;
  readonly attempts: readonly Pick<AttemptRow, 'end' | 'failure' | 'status' | 'key_id'>[];
}

/** `unknown`: nothing is told of whether the vendor knows the key, as by a vendor that is out of order. */
function toldBy({
  end,
  failure,
  status,
}: ProviderKeyUse['attempts'][number]): 'known' | 'rejected' | 'unknown' {
  switch (end) {
    case 'served':
    case 'cut':
      return 'known';
    case 'failed':
      if (status === null || failure !== 'key-rejected') return 'unknown';
      return verdictOfRefusal(status, failure, null) === 'rejected' ? 'rejected' : 'unknown';
    default:
      return 'unknown';
  }
}

/**
 * How often in a row the vendor rejected the key, with 401 or 403, counted back from the newest row to the last answer
 * that began. All other ends neither count nor end the row: no answer, no money, no room, a bad request.
 */
export function rejectionsInARow(keyId: string, newestFirst: readonly ProviderKeyUse[]): number {
  let rejections = 0;
  for (const row of newestFirst) {
    if (row.key_id === keyId) return rejections;
    const attempt = row.attempts.find(({ key_id }) => key_id === keyId);
    const told = attempt === undefined ? 'unknown' : toldBy(attempt);
    if (told === 'known') return rejections;
    if (told === 'rejected') rejections += 1;
  }
  return rejections;
}
