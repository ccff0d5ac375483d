import type pg from 'pg';
import type { ResidencyRequest } from '../../core/request/residency.ts';
import type { RequestStatus, ShownProvider, ShownResidency } from '../../core/settled-request.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import { withDatabase } from './pool.ts';

/** What `GET /v1/logs` shows of a row. */
export interface StoredLogRow {
  readonly id: bigint;
  readonly mode: string;
  readonly provider: ShownProvider;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Whole milliseconds. */
  readonly latencyMs: number;
  readonly costMicroUsd: bigint;
  readonly cacheHit: boolean;
  readonly status: RequestStatus;
  readonly error: string | null;
  readonly residencyRequested: ResidencyRequest;
  readonly residencyActual: ShownResidency;
  /** Microseconds since the epoch. */
  readonly createdAtMicros: bigint;
}

/** Where a page begins: after this row. */
export interface LogPlace {
  readonly createdAtMicros: bigint;
  readonly id: bigint;
}

export interface LogRowsQuery {
  /** Microseconds since the epoch, inclusive. Null: no bound. */
  readonly sinceMicros: bigint | null;
  /** Null: from the newest row on. */
  readonly after: LogPlace | null;
  /** 1 to 1000, checked by the caller. */
  readonly limit: number;
}

/** Bigints arrive as text. */
interface Row {
  readonly id: string;
  readonly mode: string;
  readonly provider: ShownProvider;
  readonly model: string;
  readonly input_tokens: string;
  readonly output_tokens: string;
  readonly latency_ms: number;
  readonly cost_micro_usd: string;
  readonly cache_hit: boolean;
  readonly status: RequestStatus;
  readonly error: string | null;
  readonly residency_requested: ResidencyRequest;
  readonly residency_actual: ShownResidency;
  readonly created_micros: string;
}

/**
 * Every bound is always there, the widest when there is none, so that one plan serves all pages. The
 * plain bound on created_at repeats the row comparison for partition pruning, which does not read it.
 */
const pageSql = `
  SELECT id, mode, provider, model, input_tokens, output_tokens, latency_ms, cost_micro_usd, cache_hit,
    status, error, residency_requested, residency_actual,
    (extract(epoch FROM created_at) * 1000000)::bigint AS created_micros
  FROM request_logs
  WHERE user_id = $1 AND created_at >= $2::timestamptz AND created_at <= $3::timestamptz
    AND (created_at, id) < ($3::timestamptz, $4::bigint)
  ORDER BY created_at DESC, id DESC
  LIMIT $5`;

const earliest = '-infinity';
const latest = 'infinity';
const largestId = (2n ** 63n - 1n).toString();

function fromRow(row: Row): StoredLogRow {
  return {
    id: BigInt(row.id),
    mode: row.mode,
    provider: row.provider,
    model: row.model,
    inputTokens: Number(row.input_tokens),
    outputTokens: Number(row.output_tokens),
    latencyMs: row.latency_ms,
    costMicroUsd: BigInt(row.cost_micro_usd),
    cacheHit: row.cache_hit,
    status: row.status,
    error: row.error,
    residencyRequested: row.residency_requested,
    residencyActual: row.residency_actual,
    createdAtMicros: BigInt(row.created_micros),
  };
}

/** The user's rows of one page, newest first. Throws StoreAway. */
export async function readLogRows(
  pool: pg.Pool,
  userId: string,
  { sinceMicros, after, limit }: LogRowsQuery,
): Promise<readonly StoredLogRow[]> {
  const { rows } = await withDatabase(() =>
    pool.query<Row>(pageSql, [
      userId,
      sinceMicros === null ? earliest : formatTimestampMicros(sinceMicros),
      after === null ? latest : formatTimestampMicros(after.createdAtMicros),
      after === null ? largestId : after.id.toString(),
      limit,
    ]),
  );
  return rows.map(fromRow);
}
