import type { UpstreamHeaders } from '../core/outcome.ts';
import type { VendorError } from './error-body.ts';
import { readErrorBody } from './error-body.ts';
import type { UpstreamError, UpstreamErrorKind } from './provider.ts';
import { readRetryAfterMs } from './retry-after.ts';

/** Reads an answer whose status is not 200; `kindOf` says what its vendor means by it. */
export function readUpstreamError(
  status: number,
  headers: UpstreamHeaders,
  body: Buffer,
  nowMs: number,
  kindOf: (error: VendorError) => UpstreamErrorKind,
): UpstreamError {
  const error = readErrorBody(body);
  return {
    kind: kindOf(error),
    message: error.message || `the provider answered with status ${status}`,
    code: error.code,
    retryAfterMs: readRetryAfterMs(headers, nowMs),
  };
}
