import type { MinuteLimit, Refusal } from './refusal.ts';
import type { Limits } from './user-limits.ts';

/** Windows begin with the first call and end by themselves: counts are exact, and no list of calls is kept. */
export const minuteMs = 60_000;
/** A place for a stream may be free at any moment. */
const streamWaitMs = 1_000;

/** Streams that a replica has said nothing of for so long count no longer: it may be gone, each says more often. */
export const streamLeaseMs = 15_000;

/** What a user's window holds. */
export interface MinuteCounts {
  /** Those that were admitted. */
  readonly requests: number;
  /** Of answers that are settled. */
  readonly tokens: number;
  /** Streams under way, beside the one that asks. */
  readonly streams: number;
  /** Until the window ends. */
  readonly leftMs: number;
}

/** Whether any of these has to be counted; budgets have their own sums. */
export function countsMinutes({ requestsPerMinute, tokensPerMinute, streams }: Limits): boolean {
  return requestsPerMinute !== null || tokensPerMinute !== null || streams !== null;
}

/** What keeps one more request out; null: nothing. Tokens are known only afterwards, so those of before decide. */
export function minuteRefusal(limits: Limits, counts: MinuteCounts, isStream: boolean): Refusal | null {
  const { requestsPerMinute, tokensPerMinute, streams } = limits;
  const isFull = (most: number | null, used: number): boolean => most !== null && used >= most;
  if (isFull(requestsPerMinute, counts.requests)) return refusalBy('requests', limits, counts.leftMs);
  if (isFull(tokensPerMinute, counts.tokens)) return refusalBy('tokens', limits, counts.leftMs);
  if (isStream && isFull(streams, counts.streams)) return refusalBy('streams', limits, counts.leftMs);
  return null;
}

/** The refusal of a limit in a window that lasts so much longer. */
export function refusalBy(limit: MinuteLimit, limits: Limits, leftMs: number): Refusal {
  const { requestsPerMinute, tokensPerMinute, streams } = limits;
  switch (limit) {
    case 'requests':
      return { limit, most: requestsPerMinute ?? 0, waitMs: leftMs };
    case 'tokens':
      return { limit, most: tokensPerMinute ?? 0, waitMs: leftMs };
    case 'streams':
      return { limit, most: streams ?? 0, waitMs: streamWaitMs };
  }
}

/** As OpenAI writes durations: `250ms`, `1s`, `6m0s`. Rounded up, so that nobody comes too early. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.ceil(ms))}ms`;
  const seconds = Math.ceil(ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}

/**
 * The headers that OpenAI's clients read, of the limits there are.
 * https://developers.openai.com/api/docs/guides/rate-limits, read 2026-11-22.
 */
export function rateLimitHeaders(limits: Limits, counts: MinuteCounts): Record<string, string> {
  const headers: Record<string, string> = {};
  const say = (name: string, most: number | null, used: number): void => {
    if (most === null) return;
    headers[`x-ratelimit-limit-${name}`] = String(most);
    headers[`x-ratelimit-remaining-${name}`] = String(Math.max(0, most - used));
    headers[`x-ratelimit-reset-${name}`] = durationText(counts.leftMs);
  };
  say('requests', limits.requestsPerMinute, counts.requests);
  say('tokens', limits.tokensPerMinute, counts.tokens);
  return headers;
}
