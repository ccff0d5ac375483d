import type { PaidRow } from '../../core/answer/repricing.ts';
import type { StoredRow } from '../../core/log/log-columns.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import type { Period } from '../../core/timestamp.ts';
import type { RawLogRow } from './log-row-reader.ts';
import { logRowReader } from './log-row-reader.ts';
import type { Portion } from './read-through-cursor.ts';
import { readThroughCursor } from './read-through-cursor.ts';

const usageColumns = [
  ...(['usage_basis', 'usage_reported', 'input_tokens', 'output_tokens', 'cached_input_tokens'] as const),
  ...(['cache_write_tokens', 'cache_write_long_tokens', 'reasoning_tokens'] as const),
] as const;
const { select, row: rowOf } = logRowReader(['provider', 'model', 'cost_micro_usd', ...usageColumns]);

/** Oldest first, so that its place in time tells how far it is. Answers of the cache cost nothing under any prices. */
const sql = `
  SELECT ${select}
  FROM request_logs
  WHERE created_at >= $1::timestamptz AND created_at < $2::timestamptz AND NOT cache_hit AND provider <> 'none'
  ORDER BY created_at`;

/** Rows of before bases were kept say only whether there was any usage. */
function usageOf(row: StoredRow<(typeof usageColumns)[number]>): PaidRow['usage'] {
  return {
    basis: row.usage_basis ?? (row.usage_reported ? 'complete' : 'none'),
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    cachedInputTokens: row.cached_input_tokens,
    cacheWriteTokens: row.cache_write_tokens,
    cacheWriteLongTokens: row.cache_write_long_tokens,
    reasoningTokens: row.reasoning_tokens,
  };
}

function paidRow(raw: RawLogRow): PaidRow {
  const row = rowOf(raw);
  // The query leaves out the cache, and what nobody was asked for.
  const provider = row.provider as ProviderName;
  return { provider, model: row.model, usage: usageOf(row), costMicroUsd: row.cost_micro_usd };
}

/** What all users' requests of a period used and cost. As `readThroughCursor`. */
export const readPaidRows = (url: string, period: Period): AsyncGenerator<Portion<PaidRow>> =>
  readThroughCursor(url, { purpose: 'reprice', sql, row: paidRow }, period);
