import type { UpstreamHeaders } from '../../core/outcome.ts';
import { readErrorBody } from '../error-body.ts';
import { errorKindOfStatus } from '../error-kind.ts';
import type { UpstreamError } from '../provider.ts';
import { readRetryAfterMs } from '../retry-after.ts';

/** The account's money or spend limit, which Anthropic reports as a bad request (Claude docs: Errors). */
const accountTrouble = /credit balance|spend limit|usage limits?|billing/i;

/** Reads an answer of the Messages API whose status is not 200. */
export function readAnthropicError(
  status: number,
  headers: UpstreamHeaders,
  body: Buffer,
  nowMs: number,
): UpstreamError {
  const error = readErrorBody(body);
  const account = status === 400 && accountTrouble.test(error.message);
  return {
    kind: account ? 'key-rejected' : errorKindOfStatus(status),
    message: error.message || `the provider answered with status ${status}`,
    code: error.code,
    retryAfterMs: readRetryAfterMs(headers, nowMs),
  };
}
