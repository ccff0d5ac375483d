import type pg from 'pg';
import { formatMicroUsd } from '../../core/cost.ts';
import { InvalidRequestError } from '../../core/errors.ts';
import { decodeLogCursor, encodeLogCursor } from '../../core/log-cursor.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import { withDatabase } from './pool.ts';

/** One row of GET /v1/logs (SPEC 2.5). */
export interface PublicLogRow {
  readonly id: number;
  readonly mode: string;
  readonly provider: string;
  readonly model: string;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly latency_ms: number;
  readonly cost_usd: string;
  readonly cache_hit: boolean;
  readonly status: string;
  readonly error: string | null;
  readonly residency_requested: string | null;
  readonly residency_actual: string;
  readonly created_at: string;
}

export interface LogPage {
  readonly data: readonly PublicLogRow[];
  readonly next_cursor: string | null;
}

export interface LogQuery {
  /** Microseconds since the epoch, inclusive. Null: the cursor's own, if it has one. */
  readonly since: bigint | null;
  /** 1 to 1000, checked by the caller. */
  readonly limit: number;
  /** As the client sent it. */
  readonly cursor: string | null;
}

/** Bigints arrive as text. */
interface Row
  extends Omit<PublicLogRow, 'id' | 'input_tokens' | 'output_tokens' | 'cost_usd' | 'created_at'> {
  readonly id: string;
  readonly input_tokens: string;
  readonly output_tokens: string;
  readonly cost_micro_usd: string;
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

function publicRow(row: Row): PublicLogRow {
  return {
    id: Number(row.id),
    mode: row.mode,
    provider: row.provider,
    model: row.model,
    input_tokens: Number(row.input_tokens),
    output_tokens: Number(row.output_tokens),
    latency_ms: row.latency_ms,
    cost_usd: formatMicroUsd(BigInt(row.cost_micro_usd)),
    cache_hit: row.cache_hit,
    status: row.status,
    error: row.error,
    residency_requested: row.residency_requested,
    residency_actual: row.residency_actual,
    created_at: formatTimestampMicros(BigInt(row.created_micros)),
  };
}

/**
 * One page of the user's rows, newest first (SPEC 4.6). `next_cursor` is set exactly when the page is
 * full. Throws InvalidRequestError for a malformed cursor, ServiceUnavailableError.
 */
export async function readLogs(pool: pg.Pool, userId: string, query: LogQuery): Promise<LogPage> {
  const cursor = query.cursor === null ? null : decodeLogCursor(query.cursor);
  if (query.cursor !== null && cursor === null) {
    throw new InvalidRequestError('The cursor is malformed.', 'cursor');
  }
  const since = query.since ?? cursor?.sinceMicros ?? null;
  const { rows } = await withDatabase(() =>
    pool.query<Row>(pageSql, [
      userId,
      since === null ? earliest : formatTimestampMicros(since),
      cursor === null ? latest : formatTimestampMicros(cursor.createdAtMicros),
      cursor === null ? largestId : cursor.id.toString(),
      query.limit,
    ]),
  );
  const last = rows.length === query.limit ? rows.at(-1) : undefined;
  const next =
    last === undefined
      ? null
      : encodeLogCursor({
          createdAtMicros: BigInt(last.created_micros),
          id: BigInt(last.id),
          sinceMicros: since,
        });
  return { data: rows.map(publicRow), next_cursor: next };
}
