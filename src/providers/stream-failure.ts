import type { Usage } from '../core/answer/usage.ts';
import { readErrorValue } from './error-body.ts';
import type { UnreadableAnswer, UpstreamError } from './provider.ts';

function failure(message: string, code: UpstreamError['code']): UpstreamError {
  return { kind: 'upstream-failed', message, code, retryAfterMs: null };
}

/** The body ended before the vendor said that the answer is complete. */
export const truncatedStream = failure('the stream ended before the answer was complete', 'stream_truncated');

/** The vendor's end came without a single token. */
export const emptyStream = failure('the stream ended without an answer', 'stream_empty');

/** An event that is no JSON object, or that breaks a bound of the format. */
export const unreadableStream = failure('the stream holds an unreadable event', 'stream_unreadable');

/** An event longer than the limit: it cannot be told from an endless line. */
export const oversizedEvent = failure('an event of the stream is too large', 'event_too_large');

/** Of a vendor that reports an error and says nothing of it. */
const unsaid = 'the provider reported an error';

/** An error the vendor reported inside a stream whose status was 200. */
export function reportedFailure(value: unknown): UpstreamError {
  const { message, code } = readErrorValue(value);
  return failure(message || unsaid, code ?? 'stream_error');
}

/** What is stated to have been used is kept, as part of what it may have been. */
function statedPart(stated: Usage | null): Pick<UnreadableAnswer, 'usage'> {
  const known = stated !== null && stated.inputTokens + stated.outputTokens > 0;
  return known ? { usage: { ...stated, basis: 'partial' } } : {};
}

/** A whole answer that is none. */
export const unreadableAnswer = (reason: string, stated: Usage | null = null): UnreadableAnswer => ({
  kind: 'unreadable',
  reason,
  code: null,
  ...statedPart(stated),
});

/** An error the vendor reported of one choice of an answer, or in the place of a whole one, with status 200. */
export function failedAnswer(value: unknown, stated: Usage | null): UnreadableAnswer {
  const { message, code } = readErrorValue(value);
  return {
    kind: 'unreadable',
    reason: message || unsaid,
    code: code ?? 'upstream_failed',
    ...statedPart(stated),
  };
}

/** A whole answer whose vendor does not say why it ended. Nothing of its text is quoted: it is no error of theirs. */
export const incompleteAnswer = (stated: Usage | null): UnreadableAnswer => ({
  kind: 'incomplete',
  reason: 'the answer is incomplete: a choice does not say why it ended',
  code: 'answer_incomplete',
  ...statedPart(stated),
});
