/**
 * Token counts of one answer, split so that every token is priced once. All are non-negative safe
 * integers; hostile or missing counts have been neutralised by the provider that read them.
 */
export interface Usage {
  /** False when the upstream reported nothing usable: cost is then 0. */
  readonly reported: boolean;
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
  reported: false,
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  cacheWriteLongTokens: 0,
  reasoningTokens: 0,
});
