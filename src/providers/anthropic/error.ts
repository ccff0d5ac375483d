import type { UpstreamHeaders } from '../../core/outcome.ts';
import { errorKindOfStatus } from '../error-kind.ts';
import type { UpstreamError } from '../provider.ts';
import { readUpstreamError } from '../upstream-error.ts';

/**
 * Sentences in which Anthropic reports trouble of the account as a bad request (Claude docs: Errors; issues 66314,
 * 38035 and 1047 of anthropics/claude-code, read 2026-11-26). Only as the beginning of a message: behind that it quotes
 * what the client has named itself (`tools.1.custom.input_schema.properties.billing`), which is to decide nothing.
 */
const accountTrouble =
  /^(?:your credit balance is too low|you have reached your specified (?:workspace )?api usage limits|this organization has been disabled)/i;

/** Reads an answer of the Messages API whose status is not 200. */
export function readAnthropicError(
  status: number,
  headers: UpstreamHeaders,
  body: Buffer,
  nowMs: number,
): UpstreamError {
  return readUpstreamError(status, headers, body, nowMs, ({ message }) => {
    const account = status === 400 && accountTrouble.test(message);
    return account ? 'key-rejected' : errorKindOfStatus(status);
  });
}
