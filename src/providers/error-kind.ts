import type { UpstreamErrorKind } from './provider.ts';

/** Statuses with which a vendor refuses the request itself: no repeat and no other key can help. */
const refusals: readonly number[] = [400, 413, 422];

/** What an HTTP status says, for every vendor whose body does not say otherwise. */
export function errorKindOfStatus(status: number): UpstreamErrorKind {
  if (status === 429) return 'rate-limited';
  if (status === 401 || status === 402 || status === 403) return 'key-rejected';
  if (status === 404) return 'not-found';
  if (status === 408 || status < 400 || status >= 500) return 'upstream-failed';
  return refusals.includes(status) ? 'refused' : 'unexpected-status';
}
