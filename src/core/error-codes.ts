import type { ErrorType } from './errors.ts';

/**
 * The codes of our errors, by the type that carries them: a closed list for the compiler, and the one that the API
 * description shows. What each means stands in the rows of `errors.ts`, or in the message beside it.
 */
export const errorCodes = {
  authentication_error: [
    'invalid_admin_token',
    'invalid_api_key',
    'invalid_registration_token',
    'user_disabled',
  ],
  not_found_error: ['not_found', 'model_not_found', 'not_in_profile'],
  conflict_error: ['already_exists', 'last_service_key'],
  invalid_request_error: [
    ...['body_too_large', 'expectation_failed', 'forbidden_key', 'headers_too_large'],
    ...['inexact_number', 'invalid_json', 'invalid_override', 'legacy_header'],
    ...['malformed_http', 'method_not_allowed', 'no_provider_key', 'nothing_to_change'],
    ...['refused', 'registration_closed', 'repeated_header', 'request_aborted'],
    ...['request_timeout', 'tiny_chunks', 'too_deep', 'too_many_entries'],
    ...['too_many_escapes', 'too_many_key_bytes', 'too_many_keys', 'too_many_service_keys'],
    ...['too_many_values', 'unknown_field', 'unknown_mode', 'unknown_provider'],
    ...['unsupported_charset', 'unsupported_encoding', 'unsupported_feature', 'unsupported_media_type'],
    'upstream_rejected',
  ],
  residency_error: ['residency_unavailable'],
  rate_limit_error: [
    ...['daily_budget_exceeded', 'monthly_budget_exceeded', 'rate_limit_exceeded', 'rate_limited'],
    ...['too_many_key_checks', 'too_many_queries', 'too_many_wrong_tokens', 'upstream_rate_limited'],
  ],
  api_error: ['internal_error'],
  provider_error: [
    ...[
      'address_refused',
      'address_unreadable',
      'answer_incomplete',
      'event_too_large',
      'no_upstream_answer',
    ],
    ...['stream_empty', 'stream_error', 'stream_truncated', 'stream_unreadable'],
    ...['upstream_failed', 'upstream_interrupted'],
  ],
  service_unavailable_error: [
    ...['database_unavailable', 'draining', 'log_full', 'no_room', 'overloaded', 'stored_key_unreadable'],
    ...['unavailable', 'upstream_key_rejected', 'upstream_mixed', 'upstream_unexpected_status'],
  ],
} as const satisfies Readonly<Record<ErrorType, readonly string[]>>;

/** Of one type of error, or of any. */
export type ErrorCode<T extends keyof typeof errorCodes = keyof typeof errorCodes> =
  (typeof errorCodes)[T][number];

export const allErrorCodes: readonly ErrorCode[] = Object.values(errorCodes).flat();

declare const byVendor: unique symbol;
/** What a vendor called its failure, passed on where nobody else was asked. */
export type VendorCode = string & { readonly [byVendor]: true };

/** Of a call that gave no answer: the vendor's own, or ours where it has none. */
export type FailureCode = ErrorCode<'provider_error'> | VendorCode;
