/**
 * How much the counts say. `complete`: the vendor's final counts. `partial`: what it had stated when the answer
 * was cut or its client left, often the input alone, or what of its final counts is there and can be believed;
 * counts it had not stated are 0, never a placeholder.
 * `none`: nothing usable, all counts are 0.
 */
export const usageBases = ['complete', 'partial', 'none'] as const;
export type UsageBasis = (typeof usageBases)[number];

/**
 * Token counts of one answer, split so that every token is priced once. All are non-negative safe
 * integers; hostile or missing counts have been neutralised by the provider that read them.
 */
export interface Usage {
  readonly basis: UsageBasis;
  /** All input tokens, the cached and cache-write ones included. */
  readonly inputTokens: number;
  /** All output tokens, reasoning included. */
  readonly outputTokens: number;
  /** Part of `inputTokens` read from the vendor's prompt cache. */
  readonly cachedInputTokens: number;
  /** Part of `inputTokens` written to the vendor's prompt cache for 5 minutes. */
  readonly cacheWriteTokens: number;
  /** Part of `inputTokens` written to the vendor's prompt cache for 1 hour. */
  readonly cacheWriteLongTokens: number;
  /** Part of `outputTokens` spent on reasoning; a breakdown, priced as output. */
  readonly reasoningTokens: number;
}

export const noUsage: Usage = Object.freeze({
  basis: 'none',
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  cacheWriteLongTokens: 0,
  reasoningTokens: 0,
});

/**
 * No context window comes near it, sums of a few counts stay exact, and it fits a 32-bit database column.
 * A larger count is as much a lie as a negative one.
 */
export const maxTokenCount = 2_147_483_647;

/** True for a count a sane vendor can have meant. */
export function isTokenCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxTokenCount;
}

/** The count, or null for anything negative, fractional, textual, huge or missing. */
export function tokenCount(value: unknown): number | null {
  return isTokenCount(value) ? value : null;
}
