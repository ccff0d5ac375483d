import type pg from 'pg';
import type { UsageBasis } from '../../core/answer/usage.ts';
import type { AttemptRow } from '../../core/attempt-record.ts';
import type { CandidateFate } from '../../core/candidate-fate.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import type { ResidencyBinder } from '../../core/request/residency.ts';
import type { Target } from '../../core/settled-request.ts';
import type { PricedBy } from '../../core/tables/price.ts';
import { withDatabase } from './pool.ts';
import type { ShownRow, StoredLogRow } from './read-log-rows.ts';
import { fromRow, shownColumns } from './read-log-rows.ts';

/** As `log-columns.ts` writes it. */
export type StoredCacheUse =
  | { readonly result: 'miss' }
  | {
      readonly result: 'hit';
      readonly provider: ProviderName;
      readonly model: string;
      readonly request_id: string | null;
      readonly trace_id: string | null;
    };

/** As `log-columns.ts` writes it. */
export interface StoredFate extends Target {
  readonly fate: CandidateFate;
}

/** What explains a row, as it comes from `pg`. Null where nothing is to be said, or an earlier release wrote it. */
export interface Explanation {
  readonly request_id: string;
  readonly trace_id: string | null;
  readonly stream: boolean;
  /** Whole milliseconds. */
  readonly ttft_ms: number | null;
  readonly key_id: string | null;
  readonly residency_bound_by: ResidencyBinder | null;
  readonly usage_basis: UsageBasis | null;
  /** Bigints arrive as text. */
  readonly cached_input_tokens: string;
  readonly cache_write_tokens: string;
  readonly cache_write_long_tokens: string;
  readonly reasoning_tokens: string;
  readonly saved_micro_usd: string;
  readonly tables_version: string;
  readonly candidates: readonly StoredFate[] | null;
  readonly attempts: readonly AttemptRow[];
  readonly price: PricedBy | null;
  readonly cache: StoredCacheUse | null;
}

const columns = {
  request_id: true,
  trace_id: true,
  stream: true,
  ttft_ms: true,
  key_id: true,
  residency_bound_by: true,
  usage_basis: true,
  cached_input_tokens: true,
  cache_write_tokens: true,
  cache_write_long_tokens: true,
  reasoning_tokens: true,
  saved_micro_usd: true,
  tables_version: true,
  candidates: true,
  attempts: true,
  price: true,
  cache: true,
} satisfies Record<keyof Explanation, true>;

const rowSql = `
  SELECT ${shownColumns}, ${Object.keys(columns).join(', ')}
  FROM request_logs
  WHERE id = $2 AND user_id = $1`;

export interface ExplainedRow {
  readonly row: StoredLogRow;
  readonly explanation: Explanation;
}

/** The row of this id, if it is the user's; null for any other. Throws StoreAway. */
export async function readLogRow(pool: pg.Pool, userId: string, id: bigint): Promise<ExplainedRow | null> {
  const { rows } = await withDatabase(() =>
    pool.query<ShownRow & Explanation>(rowSql, [userId, id.toString()]),
  );
  const [row] = rows;
  return row === undefined ? null : { row: fromRow(row), explanation: row };
}
