import type { Counts, MinuteLimit } from './limit-table.ts';
import { countedRows, minuteRows } from './limit-table.ts';
import type { Refusal } from './refusal.ts';
import type { Limits } from './user-limits.ts';

/** Windows begin with the first call and end by themselves: counts are exact, and no list of calls is kept. */
export const minuteMs = 60_000;
/** A place for a stream may be free at any moment. */
const streamWaitMs = 1_000;

/** Streams that a replica has said nothing of for so long count no longer: it may be gone, each says more often. */
export const streamLeaseMs = 15_000;

/** What a user's window holds of all that has a limit. */
export interface MinuteCounts extends Counts {
  /** Streams under way, beside the one that asks. */
  readonly streams: number;
  /** Until the window ends. */
  readonly leftMs: number;
}

/** Whether any of these has to be counted; budgets have their own sums. */
export function countsMinutes(limits: Limits): boolean {
  return minuteRows.some(({ field }) => limits[field] !== null);
}

/** The limits of a user by what refuses; null: there is none. */
export const minuteMosts = (limits: Limits): Readonly<Record<MinuteLimit, number | null>> =>
  Object.fromEntries(minuteRows.map(({ field, refusal }) => [refusal, limits[field]])) as Record<
    MinuteLimit,
    number | null
  >;

/** What keeps one more request out; null: nothing. Tokens are known only afterwards, so those of before decide. */
export function minuteRefusal(limits: Limits, counts: MinuteCounts, isStream: boolean): Refusal | null {
  for (const { field, refusal } of minuteRows) {
    const most = limits[field];
    if (most === null || counts[refusal] < most || (refusal === 'streams' && !isStream)) continue;
    return { limit: refusal, most, waitMs: waitMs(refusal, counts.leftMs) };
  }
  return null;
}

/** The refusal of a limit in a window that lasts so much longer. */
export function refusalBy(limit: MinuteLimit, limits: Limits, leftMs: number): Refusal {
  return { limit, most: minuteMosts(limits)[limit] ?? 0, waitMs: waitMs(limit, leftMs) };
}

function waitMs(limit: MinuteLimit, leftMs: number): number {
  switch (limit) {
    case 'requests':
    case 'tokens':
      return leftMs;
    case 'streams':
      return streamWaitMs;
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
  for (const { field, refusal: name } of countedRows) {
    const most = limits[field];
    if (most === null) continue;
    headers[`x-ratelimit-limit-${name}`] = String(most);
    headers[`x-ratelimit-remaining-${name}`] = String(Math.max(0, most - counts[name]));
    headers[`x-ratelimit-reset-${name}`] = durationText(counts.leftMs);
  }
  return headers;
}
