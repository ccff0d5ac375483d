import { RateLimitError } from '../../core/errors.ts';

/** Of one client, by each replica: enough for a person who mistypes, and no way to find a token. */
export const wrongTokensPerMinute = 10;

/**
 * Whoever has sent too many is refused for the rest of the minute, right token or not: it could go on guessing. Where
 * an address may stand for many, a registration token that is right is taken all the same (`registration-policy.ts`).
 */
export function tooManyWrongTokens(kind: 'admin' | 'registration', waitSeconds: number): RateLimitError {
  return new RateLimitError(`Too many wrong ${kind} tokens came from your address; try again later.`, {
    code: 'too_many_wrong_tokens',
    headers: { 'retry-after': String(waitSeconds) },
  });
}
