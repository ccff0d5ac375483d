import {
  maxKeyBytesPerUser,
  maxKeyChecksPerMinute,
  maxQueriesUnderWay,
  maxServiceKeysPerUser,
  maxUserServerKeys,
} from './account/account-limits.ts';
import type { ErrorCode, FailureCode, VendorCode } from './error-codes.ts';

/**
 * Every error of ours: its type, its status, which chat requests may end so, and in Markdown when it is answered.
 * `candidate`: requests that a candidate was asked for; `chat`: any of them; `elsewhere`: other routes, and what is
 * refused before a route is known. The closed lists of metrics and of the API description follow from it, and the
 * table of docs/requests.md by `npm run generate` (SPEC 7; docs/decisions/0001). The first row of a type has its usual
 * status.
 */
export const errorRows = [
  [
    'authentication_error',
    401,
    'chat',
    'missing or bad service key; `user_disabled`: a good one of a user whom the operator has disabled',
  ],
  ['not_found_error', 404, 'elsewhere', 'unknown path, key or model; also what belongs to somebody else'],
  [
    'conflict_error',
    409,
    'elsewhere',
    'e-mail or provider key registered already; `last_service_key`: it cannot be deleted',
  ],
  [
    'invalid_request_error',
    422,
    'chat',
    `body, parameter or header not acceptable (\`param\` names it); \`no_provider_key\`; \`unsupported_feature\`; \`too_many_keys\` (${maxUserServerKeys} \`self_hosted\`, or an object of the body has too many or too long ones), \`too_many_key_bytes\` (${maxKeyBytesPerUser / 1024} KiB of all keys); \`too_many_service_keys\` (${maxServiceKeysPerUser}); \`too_many_values\`, \`too_many_escapes\` (bodies that cost too much to read); \`upstream_rejected\`: every candidate refused the request itself`,
  ],
  ['residency_error', 422, 'chat', 'India asked for, no key for it'],
  [
    'rate_limit_error',
    429,
    'candidate',
    `every candidate answered 429; \`Retry-After\` is the least of theirs. \`rate_limit_exceeded\`: more requests or tokens per minute, or streams at once, than the user may have; \`daily_budget_exceeded\`, \`monthly_budget_exceeded\`: a budget is spent (\`x-should-retry: false\`). \`too_many_queries\`: of one user ${maxQueriesUnderWay} requests for keys, and as many for logs and statistics, run at once per replica; the others wait in line for a moment. \`too_many_key_checks\`: ${maxKeyChecksPerMinute} of one user in a minute. \`rate_limited\`: registrations in this minute; \`too_many_wrong_tokens\`: wrong tokens from one address`,
  ],
  ['api_error', 500, 'chat', 'a bug; the cause is in the log'],
  [
    'provider_error',
    502,
    'candidate',
    'every candidate failed or timed out; `address_refused`, `address_unreadable`: no address that may be used, no provider was asked',
  ],
  [
    'service_unavailable_error',
    503,
    'candidate',
    'mixed failures; every key rejected; `stored_key_unreadable`: the stored key does not open, no vendor was asked; overload; draining; database away',
  ],
  ['invalid_request_error', 400, 'elsewhere', 'malformed HTTP'],
  ['invalid_request_error', 403, 'elsewhere', 'closed registration'],
  ['invalid_request_error', 405, 'elsewhere', 'wrong method; `Allow` names the right ones'],
  ['invalid_request_error', 408, 'elsewhere', 'the request came too slowly'],
  ['invalid_request_error', 413, 'elsewhere', 'body too large'],
  ['invalid_request_error', 415, 'elsewhere', 'body of another type or coding'],
  ['invalid_request_error', 417, 'elsewhere', '`Expect` that is not met'],
  ['invalid_request_error', 431, 'elsewhere', 'headers too large'],
] as const;

export type ErrorType = (typeof errorRows)[number][0];
export const errorTypes: readonly ErrorType[] = [...new Set(errorRows.map(([type]) => type))];
const usualStatuses = new Map<ErrorType, number>(
  errorRows.toReversed().map(([type, status]) => [type, status]),
);

/** What became of one candidate, as the log row and the body of an exhausted tier request show it. */
export interface AttemptReport {
  readonly provider: string;
  readonly model: string;
  /** Upstream HTTP status, or null when no answer came, or the candidate was passed over. */
  readonly status: number | null;
  readonly reason: string;
  readonly latency_ms: number;
  /** Client fields that this vendor or model does not take and that were left out; absent when none were. */
  readonly dropped?: readonly string[];
}

export interface GatewayErrorDetails<C extends ErrorCode | VendorCode = ErrorCode | VendorCode> {
  /** Where it is not the usual one of the type. */
  readonly status?: number;
  readonly param?: string | null;
  readonly code?: C | null;
  /** Response headers, lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly attempts?: readonly AttemptReport[];
  readonly cause?: unknown;
}

/** An error with a place in SPEC 7; `core/error-body.ts` is the only form of its body. */
export class GatewayError extends Error {
  readonly status: number;
  readonly type: ErrorType;
  readonly param: string | null;
  readonly code: ErrorCode | VendorCode | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly attempts: readonly AttemptReport[] | null;

  constructor(type: ErrorType, message: string, details: GatewayErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.status = details.status ?? (usualStatuses.get(type) as number);
    this.type = type;
    this.param = details.param ?? null;
    this.code = details.code ?? null;
    this.headers = details.headers ?? {};
    this.attempts = details.attempts ?? null;
  }
}

/** The repeat would end in the same way (docs/decisions/0001). */
export const noRetry = { 'x-should-retry': 'false' } as const;

/** 401: missing or bad service key. */
export class AuthenticationError extends GatewayError {
  constructor(
    message = 'Missing or invalid service API key. Send "Authorization: Bearer <API_KEY>".',
    code: ErrorCode<'authentication_error'> = 'invalid_api_key',
  ) {
    super('authentication_error', message, {
      code,
      headers: { 'www-authenticate': 'Bearer' },
    });
  }
}

/** 404: unknown route, key or model, or one that belongs to somebody else. */
export class NotFoundError extends GatewayError {
  constructor(message: string, details: GatewayErrorDetails<ErrorCode<'not_found_error'>> = {}) {
    super('not_found_error', message, { code: 'not_found', ...details });
  }
}

/** 409: retrying cannot help, so the answer asks SDKs not to. */
export class ConflictError extends GatewayError {
  constructor(message: string, param: string, code: ErrorCode<'conflict_error'> = 'already_exists') {
    super('conflict_error', message, { param, code, headers: noRetry });
  }
}

/** 422: the body, a parameter or a header is not acceptable. `param` names the field. */
export class InvalidRequestError extends GatewayError {
  constructor(message: string, param: string | null, code: ErrorCode<'invalid_request_error'> | null = null) {
    super('invalid_request_error', message, { param, code });
  }
}

/** 400, 403, 405, 408, 413, 415, 417, 431: HTTP itself refuses the request, or a route is closed. */
export class HttpRequestError extends GatewayError {
  constructor(
    status: number,
    message: string,
    code: ErrorCode<'invalid_request_error'>,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super('invalid_request_error', message, { status, code, headers });
  }
}

/** 422: India residency asked for, but no key of the caller can serve it. */
export class ResidencyError extends GatewayError {
  constructor(message: string) {
    super('residency_error', message, { param: 'X-Gateway-Residency', code: 'residency_unavailable' });
  }
}

/** 429 of the gateway itself or of every candidate. */
export class RateLimitError extends GatewayError {
  constructor(message: string, details: GatewayErrorDetails<ErrorCode<'rate_limit_error'>> = {}) {
    super('rate_limit_error', message, { code: 'rate_limited', ...details });
  }
}

/** 500: fixed text; the cause goes to the log only. */
export class ApiError extends GatewayError {
  constructor(cause: unknown) {
    super('api_error', 'Internal server error.', { code: 'internal_error', cause });
  }
}

/** 502: upstream 5xx, timeout or network failure after fallback is exhausted. */
export class ProviderError extends GatewayError {
  constructor(message: string, details: GatewayErrorDetails<FailureCode> = {}) {
    super('provider_error', message, { code: 'upstream_failed', ...details });
  }
}

/** 503: mixed upstream failures, overload, or a store that is away. */
export class ServiceUnavailableError extends GatewayError {
  constructor(message: string, details: GatewayErrorDetails<ErrorCode<'service_unavailable_error'>> = {}) {
    super('service_unavailable_error', message, { code: 'unavailable', ...details });
  }
}

/** With a 503 that passes by itself: what is short is free again, or another replica takes over, within a second. */
export const retrySoon = { 'retry-after': '1' } as const;

/** 503: more work at once than there is room for; `cause` says of what. */
export function overloaded(cause?: unknown): ServiceUnavailableError {
  return new ServiceUnavailableError('The gateway is overloaded; try again.', {
    code: 'overloaded',
    headers: retrySoon,
    cause,
  });
}

/** 503: a call, or its answer, for which the gateway has no room beside those under way; no vendor is to blame. */
export function noRoom(details: GatewayErrorDetails = {}, message?: string): ServiceUnavailableError {
  return new ServiceUnavailableError(message ?? 'The gateway has no room for this call now; try again.', {
    ...details,
    code: 'no_room',
    headers: retrySoon,
  });
}

/** 503: the stored key does not open, and no vendor was asked; it stays so until the owner or the operator mends it. */
export function storedKeyUnreadable(
  message: string,
  details: GatewayErrorDetails = {},
): ServiceUnavailableError {
  return new ServiceUnavailableError(message, {
    ...details,
    code: 'stored_key_unreadable',
    headers: noRetry,
  });
}

/** 502: no provider was asked, since there is no address that may be used; it stays so until somebody changes it. */
export function addressUnusable(
  message: string,
  why: 'refused' | 'unreadable',
  details: GatewayErrorDetails = {},
): ProviderError {
  return new ProviderError(message, { ...details, code: `address_${why}`, headers: noRetry });
}

/** 503: the process is about to end; `what` of the request, where it had begun. */
export function draining(what = ''): ServiceUnavailableError {
  return new ServiceUnavailableError(`The gateway is shutting down${what}.`, {
    code: 'draining',
    headers: retrySoon,
  });
}
