import type { ErrorCode } from './error-codes.ts';
import type { AttemptReport, GatewayErrorDetails } from './errors.ts';
import {
  ApiError,
  addressUnusable,
  GatewayError,
  noRetry,
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

/** Every provider rejected the key that the user stored, which is no failure of the service. */
export class KeysRejectedError extends ServiceUnavailableError {}

/** Headers of a 429: the least Retry-After any candidate gave, in whole seconds; 0 when one may be asked at once. */
function retryHeaders(failures: readonly AttemptFailure[]): Record<string, string> {
  const waits = failures.flatMap((failure) => (failure.retryAfterMs === null ? [] : [failure.retryAfterMs]));
  if (waits.length === 0) return {};
  const seconds = Math.ceil(Math.min(...waits) / 1000);
  const headers: Record<string, string> = { 'retry-after': String(seconds) };
  if (seconds > longestUsefulRetrySeconds) headers['x-should-retry'] = 'false';
  return headers;
}

/** They say the same to a repeat: about the request itself, or about keys, model names and addresses. */
const lasting: ReadonlySet<Family> = new Set(['refused', 'rejected', 'key-unreadable']);

const isLasting = ({ kind, unusableAddress }: AttemptFailure): boolean =>
  lasting.has(familyOf[kind]) || unusableAddress !== undefined;

/** No answer that can be used from any of them: a repeat may help, unless nobody can be asked. */
function allBroken(failures: readonly AttemptFailure[], details: GatewayErrorDetails): GatewayError {
  const addresses = new Set(failures.map(({ unusableAddress }) => unusableAddress));
  if (addresses.has(undefined)) {
    return new ProviderError('Every candidate failed.', { ...details, code: 'upstream_failed' });
  }
  const why = addresses.has('refused') ? 'refused' : 'unreadable';
  return addressUnusable(
    'No candidate has an address that may be used. No provider was asked.',
    why,
    details,
  );
}

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
  const details = <C extends ErrorCode>(extra: GatewayErrorDetails<C>): GatewayErrorDetails<C> => ({
    attempts,
    ...extra,
  });
  switch (only) {
    case 'rate-limited':
      return new RateLimitError(
        'Every candidate is rate limited.',
        details({ code: 'upstream_rate_limited', headers: retryHeaders(failures) }),
      );
    case 'broken':
      return allBroken(failures, details({}));
    case 'refused':
      return new GatewayError(
        'invalid_request_error',
        'Every candidate refused the request itself; attempts[] holds what each said.',
        details({ code: 'upstream_rejected' }),
      );
    case 'rejected': {
      // A model that no vendor knows may be a mistake of the tables.
      const byKeys = failures.every(({ kind }) => kind === 'key-rejected');
      return new (byKeys ? KeysRejectedError : ServiceUnavailableError)(
        'Every candidate rejected the stored key or does not know the model.',
        details({ code: 'upstream_key_rejected', headers: noRetry }),
      );
    }
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
        details({ code: 'upstream_mixed', headers: failures.every(isLasting) ? noRetry : {} }),
      );
  }
}
