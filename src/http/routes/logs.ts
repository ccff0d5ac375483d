import type { LogRowsQuery, StoredLogRow } from '../../adapters/postgres/read-log-rows.ts';
import { formatMicroUsd } from '../../core/answer/cost.ts';
import { encodeLogCursor } from '../../core/log-cursor.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import type { LogPage } from '../answer-schemas.ts';
import type { LogsQuery } from '../query-schemas.ts';
import { defaultPage } from '../query-schemas.ts';

export interface LogsDeps {
  readonly readLogRows: (userId: string, query: LogRowsQuery) => Promise<readonly StoredLogRow[]>;
}

function publicRow(row: StoredLogRow): LogPage['data'][number] {
  return {
    id: Number(row.id),
    mode: row.mode,
    provider: row.provider,
    model: row.model,
    input_tokens: row.inputTokens,
    output_tokens: row.outputTokens,
    latency_ms: row.latencyMs,
    cost_usd: formatMicroUsd(row.costMicroUsd),
    cache_hit: row.cacheHit,
    status: row.status,
    error: row.error,
    residency_requested: row.residencyRequested,
    residency_actual: row.residencyActual,
    created_at: formatTimestampMicros(row.createdAtMicros),
  };
}

/**
 * One page of the user's rows, newest first (SPEC 4.6). `next_cursor` is set exactly when the page is full; it carries
 * `since`.
 */
export async function logPage(deps: LogsDeps, userId: string, query: LogsQuery): Promise<LogPage> {
  const cursor = query.cursor ?? null;
  const sinceMicros = query.since ?? cursor?.sinceMicros ?? null;
  const limit = query.limit ?? defaultPage;
  const rows = await deps.readLogRows(userId, { sinceMicros, after: cursor, limit });
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return {
    data: rows.map(publicRow),
    next_cursor:
      last === undefined
        ? null
        : encodeLogCursor({ createdAtMicros: last.createdAtMicros, id: last.id, sinceMicros }),
  };
}
