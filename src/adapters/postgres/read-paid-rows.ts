import type { PaidRow } from '../../core/answer/repricing.ts';
import type { Usage, UsageBasis } from '../../core/answer/usage.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import type { Portion, ReadPeriod } from './read-through-cursor.ts';
import { readThroughCursor } from './read-through-cursor.ts';

/** Bigints arrive as text. */
interface Row {
  readonly provider: ProviderName;
  readonly model: string;
  readonly usage_basis: UsageBasis | null;
  readonly usage_reported: boolean;
  readonly input_tokens: string;
  readonly output_tokens: string;
  readonly cached_input_tokens: string;
  readonly cache_write_tokens: string;
  readonly cache_write_long_tokens: string;
  readonly reasoning_tokens: string;
  readonly cost_micro_usd: string;
  readonly created_micros: string;
}

/** Oldest first, so that its place in time tells how far it is. Answers of the cache cost nothing under any prices. */
const paidSql = `
  SELECT provider, model, usage_basis, usage_reported, input_tokens, output_tokens, cached_input_tokens,
    cache_write_tokens, cache_write_long_tokens, reasoning_tokens, cost_micro_usd,
    (extract(epoch FROM created_at) * 1000000)::bigint AS created_micros
  FROM request_logs
  WHERE created_at >= $1::timestamptz AND created_at < $2::timestamptz AND NOT cache_hit AND provider <> 'none'
  ORDER BY created_at`;

/** Rows of before bases were kept say only whether there was any usage. */
function usageOf(row: Row): Usage {
  return {
    basis: row.usage_basis ?? (row.usage_reported ? 'complete' : 'none'),
    inputTokens: Number(row.input_tokens),
    outputTokens: Number(row.output_tokens),
    cachedInputTokens: Number(row.cached_input_tokens),
    cacheWriteTokens: Number(row.cache_write_tokens),
    cacheWriteLongTokens: Number(row.cache_write_long_tokens),
    reasoningTokens: Number(row.reasoning_tokens),
  };
}

/** What all users' requests of a period used and cost. As `readThroughCursor`. */
export async function* readPaidRows(url: string, period: ReadPeriod): AsyncGenerator<Portion<PaidRow>> {
  for await (const { rows, untilMicros } of readThroughCursor<Row>(url, 'reprice', paidSql, period)) {
    const paid = rows.map((row) => ({
      provider: row.provider,
      model: row.model,
      usage: usageOf(row),
      costMicroUsd: BigInt(row.cost_micro_usd),
    }));
    yield { rows: paid, untilMicros };
  }
}
