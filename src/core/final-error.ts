import type { AttemptReport, GatewayErrorDetails } from './errors.ts';
import {
  ApiError,
  GatewayError,
  noRoom,
  ProviderError,
  RateLimitError,
  ServiceUnavailableError,
  storedKeyUnreadable,
} from './errors.ts';
import type { AttemptFailure, FailureKind } from './outcome.ts';

/** An SDK that honours a longer Retry-After hangs for minutes, so the answer asks it not to retry by itself. */
export const longestUsefulRetrySeconds = 60;

type Family =
  | 'rate-limited'
  | 'broken'
  | 'refused'
  | 'rejected'
  | 'key-unreadable'
  | 'unexpected'
  | 'no-room'
  | 'ours';

const familyOf: Readonly<Record<FailureKind, Family>> = {
  'rate-limited': 'rate-limited',
  'upstream-failed': 'broken',
  'timed-out': 'broken',
  unreachable: 'broken',
  unreadable: 'broken',
  incomplete: 'broken',
  refused: 'refused',
  'key-rejected': 'rejected',
  'not-found': 'rejected',
  'key-unreadable': 'key-unreadable',
  'unexpected-status': 'unexpected',
  'no-room': 'no-room',
  'internal-error': 'ours',
};

/** Headers of a 429: the least Retry-After any candidate gave, in whole seconds; 0 when one may be asked at once. */
function retryHeaders(failures: readonly AttemptFailure[]): Record<string, string> {
  const waits = failures.flatMap((failure) => (failure.retryAfterMs === null ? [] : [failure.retryAfterMs]));
  if (waits.length === 0) return {};
  const seconds = Math.ceil(Math.min(...waits) / 1000);
  const headers: Record<string, string> = { 'retry-after': String(seconds) };
  if (seconds > longestUsefulRetrySeconds) headers['x-should-retry'] = 'false';
  return headers;
}

const noRetry = { 'x-should-retry': 'false' } as const;

/** Keys and model names stay as they are until somebody changes them. */
const isLasting = (family: Family): boolean => family === 'rejected' || family === 'key-unreadable';

/**
 * The exhaustion truth table (SPEC 7; docs/decisions/0003): what a tier request answers once every
 * candidate has failed. `failures` is not empty.
 */
export function finalError(
  failures: readonly AttemptFailure[],
  attempts: readonly AttemptReport[],
): GatewayError {
  const families = new Set(failures.map((failure) => familyOf[failure.kind]));
  const only = families.size === 1 ? [...families][0] : undefined;
  const details = (extra: GatewayErrorDetails): GatewayErrorDetails => ({ attempts, ...extra });
  switch (only) {
    case 'rate-limited':
      return new RateLimitError(
        'Every candidate is rate limited.',
        details({ code: 'upstream_rate_limited', headers: retryHeaders(failures) }),
      );
    case 'broken':
      return new ProviderError('Every candidate failed.', details({ code: 'upstream_failed' }));
    case 'refused':
      return new GatewayError(
        'invalid_request_error',
        'Every candidate refused the request itself; attempts[] holds what each said.',
        details({ code: 'upstream_rejected' }),
      );
    case 'rejected':
      return new ServiceUnavailableError(
        'Every candidate rejected the stored key or does not know the model.',
        details({ code: 'upstream_key_rejected', headers: noRetry }),
      );
    case 'key-unreadable':
      return storedKeyUnreadable(
        'No stored key of a candidate can be opened. No provider was asked; register the keys again.',
        details({}),
      );
    case 'unexpected':
      return new ServiceUnavailableError(
        'Every candidate answered with a status that says nothing of the request; attempts[] holds which.',
        details({ code: 'upstream_unexpected_status' }),
      );
    case 'no-room':
      return noRoom(details({}));
    case 'ours':
      return new ApiError(new Error('Every candidate failed for an error of ours; each was logged before.'));
    default:
      return new ServiceUnavailableError(
        'All candidates failed, for different reasons.',
        details({ code: 'upstream_mixed', headers: [...families].every(isLasting) ? noRetry : {} }),
      );
  }
}
