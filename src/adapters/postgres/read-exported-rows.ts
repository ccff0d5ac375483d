import { formatMicroUsd } from '../../core/answer/cost.ts';
import type { ChargedRow } from '../../core/answer/focus-charges.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import type { Portion, ReadPeriod } from './read-through-cursor.ts';
import { readThroughCursor } from './read-through-cursor.ts';

type Value = string | number | boolean | null;

const asIs = (value: Value): Value => value;
/** Bigints arrive as text; counts and ids are far below 2^53. */
const count = (value: Value): Value => Number(value);

/** Of each row, in the order of the file, and how it is read; amounts and times are written as the API writes them. */
const columns = {
  id: count,
  user_id: asIs,
  request_id: asIs,
  mode: asIs,
  provider: asIs,
  model: asIs,
  key_id: asIs,
  status: asIs,
  error: asIs,
  residency_requested: asIs,
  residency_bound_by: asIs,
  residency_actual: asIs,
  stream: asIs,
  cache_hit: asIs,
  usage_basis: asIs,
  input_tokens: count,
  output_tokens: count,
  cached_input_tokens: count,
  cache_write_tokens: count,
  cache_write_long_tokens: count,
  reasoning_tokens: count,
  latency_ms: asIs,
  ttft_ms: asIs,
  tables_version: asIs,
  trace_id: asIs,
} as const;

type Row = Readonly<Record<string, Value>> & { readonly created_micros: string };

/** Every request of the period, oldest first. */
const rowsSql = `
  SELECT ${Object.keys(columns).join(', ')}, cost_micro_usd, saved_micro_usd,
    (extract(epoch FROM created_at) * 1000000)::bigint AS created_micros
  FROM request_logs
  WHERE created_at >= $1::timestamptz AND created_at < $2::timestamptz
  ORDER BY created_at, id`;

/** The rows of all users in a period. As `readThroughCursor`. */
export const readExportedRows = (url: string, period: ReadPeriod): AsyncGenerator<Portion<Row>> =>
  readThroughCursor<Row>(url, 'export', rowsSql, period);

/** A row as it is written to files. */
export function exportedRow(row: Row): Readonly<Record<string, Value>> {
  const shown = Object.entries(columns).map(([name, read]) => [name, read(row[name] ?? null)]);
  return {
    created_at: formatTimestampMicros(BigInt(row.created_micros)),
    ...Object.fromEntries(shown),
    cost_usd: formatMicroUsd(BigInt(String(row['cost_micro_usd']))),
    saved_usd: formatMicroUsd(BigInt(String(row['saved_micro_usd']))),
  };
}

/** Null for what no vendor was asked for: answers of the cache, refusals. */
export function chargedRow(row: Row): ChargedRow | null {
  if (row['cache_hit'] === true || row['provider'] === 'none') return null;
  return {
    createdMicros: BigInt(row.created_micros),
    userId: String(row['user_id']),
    keyId: row['key_id'] === null ? null : String(row['key_id']),
    provider: String(row['provider']),
    model: String(row['model']),
    residency: String(row['residency_actual']),
    inputTokens: Number(row['input_tokens']),
    outputTokens: Number(row['output_tokens']),
    costMicroUsd: BigInt(String(row['cost_micro_usd'])),
  };
}
