import type { WireUsage } from '../../core/chat-completion.ts';
import type { Usage } from '../../core/usage.ts';
import { isTokenCount, tokenCount } from '../../core/usage.ts';
import type { JsonRecord } from '../json-value.ts';
import { isRecord } from '../json-value.ts';

export interface ReadUsage {
  readonly usage: Usage;
  readonly wire: WireUsage;
}

/** The first field that holds a count, at most `limit`: a part cannot be larger than its whole. */
function partOf(details: unknown, names: readonly string[], limit: number): number {
  if (!isRecord(details)) return 0;
  for (const name of names) {
    const count = tokenCount(details[name]);
    if (count !== null) return Math.min(count, limit);
  }
  return 0;
}

/** A breakdown without the numbers nobody can have meant; the same object when all are sane. */
function saneDetails(details: JsonRecord): JsonRecord {
  const entries = Object.entries(details);
  const sane = entries.filter(([, value]) => typeof value !== 'number' || isTokenCount(value));
  return sane.length === entries.length ? details : Object.fromEntries(sane);
}

function wireOf(given: JsonRecord, input: number, output: number): WireUsage {
  const wire: JsonRecord = { ...given };
  for (const [name, value] of Object.entries(given)) {
    if (isRecord(value)) wire[name] = saneDetails(value);
    else if (typeof value === 'number' && name.endsWith('_tokens') && !isTokenCount(value)) delete wire[name];
  }
  // A total that is no sum is passed as given: some servers count reasoning apart.
  const total = tokenCount(given['total_tokens']) ?? input + output;
  return { ...wire, prompt_tokens: input, completion_tokens: output, total_tokens: total };
}

/**
 * Reads a usage object of OpenAI shape: cached and cache-write tokens are parts of `prompt_tokens`, reasoning
 * is a part of `completion_tokens` (OpenAI API reference, CompletionUsage). Hostile counts read as 0; null when
 * not one count can be believed.
 */
export function readUsage(given: unknown): ReadUsage | null {
  if (!isRecord(given)) return null;
  const prompt = tokenCount(given['prompt_tokens']);
  const completion = tokenCount(given['completion_tokens']);
  if (prompt === null && completion === null) return null;
  const inputTokens = prompt ?? 0;
  const outputTokens = completion ?? 0;
  const details = given['prompt_tokens_details'];
  const cachedInputTokens = partOf(details, ['cached_tokens'], inputTokens);
  return {
    usage: {
      basis: 'complete',
      inputTokens,
      outputTokens,
      cachedInputTokens,
      cacheWriteTokens: partOf(
        details,
        ['cache_write_tokens', 'cache_creation_tokens'],
        inputTokens - cachedInputTokens,
      ),
      cacheWriteLongTokens: 0,
      reasoningTokens: partOf(given['completion_tokens_details'], ['reasoning_tokens'], outputTokens),
    },
    wire: wireOf(given, inputTokens, outputTokens),
  };
}
