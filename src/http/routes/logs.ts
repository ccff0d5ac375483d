import type { ExplainedRow } from '../../adapters/postgres/read-log-row.ts';
import type { LogRowsQuery, StoredLogRow } from '../../adapters/postgres/read-log-rows.ts';
import { formatMicroUsd } from '../../core/answer/cost.ts';
import { encodeLogCursor } from '../../core/log-cursor.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import type { LogPage } from '../log-schemas.ts';
import type { LogsQuery } from '../query-schemas.ts';
import { defaultPage } from '../query-schemas.ts';

export interface LogsDeps {
  readonly readLogRows: (userId: string, query: LogRowsQuery) => Promise<readonly StoredLogRow[]>;
  /** Null for a row that is not the caller's. */
  readonly readLogRow: (userId: string, id: bigint) => Promise<ExplainedRow | null>;
}

/** The columns under their own names, but for amounts and times, which are written as the specification says. */
export function publicRow({
  id,
  cost_micro_usd,
  created_micros,
  ...row
}: StoredLogRow): LogPage['data'][number] {
  return {
    id: Number(id),
    ...row,
    cost_usd: formatMicroUsd(cost_micro_usd),
    created_at: formatTimestampMicros(created_micros),
  };
}

/**
 * One page of the user's rows, newest first (SPEC 4.6). `next_cursor` is set exactly when the page is full; it carries
 * `since` and `request_id`.
 */
export async function logPage(
  deps: Pick<LogsDeps, 'readLogRows'>,
  userId: string,
  query: LogsQuery,
): Promise<LogPage> {
  const cursor = query.cursor ?? null;
  const sinceMicros = query.since ?? cursor?.sinceMicros ?? null;
  const requestId = query.request_id ?? cursor?.requestId ?? null;
  const limit = query.limit ?? defaultPage;
  const rows = await deps.readLogRows(userId, { sinceMicros, after: cursor, requestId, limit });
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return {
    data: rows.map(publicRow),
    next_cursor:
      last === undefined
        ? null
        : encodeLogCursor({ createdAtMicros: last.created_micros, id: last.id, sinceMicros, requestId }),
  };
}
