import type { ChargedRow } from '../answer/focus-charges.ts';
import { formatTimestampMicros } from '../timestamp.ts';
import type { StoredRow } from './log-columns.ts';
import { exportColumns } from './log-columns.ts';
import { fieldsShown } from './shown-columns.ts';

type ExportColumn = (typeof exportColumns)[number];
export type ExportedRow = StoredRow<ExportColumn>;

/** What a request was stands before what it used, and amounts stand last. */
const first: readonly ExportColumn[] = [
  ...(['user_id', 'request_id', 'mode', 'provider', 'model', 'key_id', 'status', 'error'] as const),
  ...(['residency_requested', 'residency_bound_by', 'residency_actual', 'stream', 'cache_hit'] as const),
];
const last: readonly ExportColumn[] = ['cost_micro_usd', 'saved_micro_usd'];
const others = exportColumns.filter((name) => !first.includes(name) && !last.includes(name));

const fieldsOf = fieldsShown([...first, ...others, ...last]);

/** A row as it is written to files. */
export const exportedLine = (
  row: ExportedRow,
): Readonly<Record<string, string | number | boolean | null>> => ({
  created_at: formatTimestampMicros(row.created_micros),
  id: Number(row.id),
  ...fieldsOf(row),
});

/** Null for what no vendor was asked for: answers of the cache, refusals. */
export function chargedRow(row: ExportedRow): ChargedRow | null {
  if (row.cache_hit || row.provider === 'none') return null;
  return {
    createdMicros: row.created_micros,
    userId: row.user_id,
    keyId: row.key_id,
    provider: row.provider,
    model: row.model,
    residency: row.residency_actual,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    costMicroUsd: row.cost_micro_usd,
  };
}
