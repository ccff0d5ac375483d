/**
 * How releases before wrote rows, as their code said it: how many migrations each knew, the type of its new rows, and the
 * columns that it named. A release that changes one of these adds the one before to the list, and never edits what is here.
 */
export interface ReleaseBefore {
  readonly name: string;
  readonly migrations: number;
  readonly type: string;
  readonly columns: string;
}

const columnsOf7 = `row_id, user_id, request_id, mode, provider, model, key_id, usage_reported, usage_basis, input_tokens,
  output_tokens, cached_input_tokens, cache_write_tokens, cache_write_long_tokens, reasoning_tokens, latency_ms, ttft_ms,
  cost_micro_usd, saved_micro_usd, cache_hit, stream, status, error, residency_requested, residency_actual, attempts,
  candidates, price, cache, tables_version, trace_id`;

export const releasesBefore: readonly ReleaseBefore[] = [
  { name: 'sums by the period', migrations: 7, type: 'new_log_row', columns: columnsOf7 },
  {
    name: 'residency by policy',
    migrations: 8,
    type: 'new_log_row_with_binder',
    columns: `${columnsOf7}, residency_bound_by`,
  },
  {
    name: 'limits of users, without checksums',
    migrations: 9,
    type: 'new_log_row_with_binder',
    columns: `${columnsOf7}, residency_bound_by`,
  },
];

const unsummed = `user_id, created_at, provider, model, mode, status, cache_hit, latency_ms, input_tokens, output_tokens,
  cost_micro_usd, saved_micro_usd`;

/** Inserts one new row and what is to be summed of it. $1: the row as JSON. */
export function insertOf({ type, columns }: ReleaseBefore): string {
  return `
    WITH input AS (SELECT (jsonb_populate_record(NULL::${type}, $1::jsonb)).*),
    inserted AS (
      INSERT INTO request_logs (created_at, ${columns}) SELECT created_at, ${columns} FROM input
    )
    INSERT INTO unsummed_requests (${unsummed}) SELECT ${unsummed} FROM input`;
}
