import type { LogRowsQuery } from '../../adapters/postgres/read-log-rows.ts';
import type { ListedRow } from '../../core/log/log-columns.ts';
import { listColumns } from '../../core/log/log-columns.ts';
import { encodeLogCursor } from '../../core/log/log-cursor.ts';
import { fieldsShown } from '../../core/log/shown-columns.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import type { LogPage } from '../schemas/log-schemas.ts';
import type { LogsQuery } from '../schemas/query-schemas.ts';
import { defaultPage } from '../schemas/query-schemas.ts';

export interface LogStore {
  /** `take` makes the answer while the user's turn lasts: long pages in the making are what takes memory. */
  readonly readLogRows: (
    userId: string,
    query: LogRowsQuery,
    take: (rows: readonly ListedRow[]) => Promise<LogPage>,
  ) => Promise<LogPage>;
}

const fieldsOf = fieldsShown(listColumns);

/** A row as lists show it. */
export function listedRow(row: ListedRow): LogPage['data'][number] {
  return { id: Number(row.id), ...fieldsOf(row), created_at: formatTimestampMicros(row.created_micros) };
}

/**
 * One page of the user's rows, newest first (SPEC 4.6). `next_cursor` is set exactly when the page is full; it carries
 * `since` and `request_id`. `write` is what is still to be done with it in the user's turn.
 */
export async function logPage(
  store: LogStore,
  userId: string,
  query: LogsQuery,
  write: (page: LogPage) => Promise<LogPage>,
): Promise<LogPage> {
  const cursor = query.cursor ?? null;
  const sinceMicros = query.since ?? cursor?.sinceMicros ?? null;
  const requestId = query.request_id ?? cursor?.requestId ?? null;
  const limit = query.limit ?? defaultPage;
  return store.readLogRows(userId, { sinceMicros, after: cursor, requestId, limit }, (rows) => {
    const last = rows.length === limit ? rows.at(-1) : undefined;
    const next =
      last === undefined
        ? null
        : encodeLogCursor({ createdAtMicros: last.created_micros, id: last.id, sinceMicros, requestId });
    return write({ data: rows.map(listedRow), next_cursor: next });
  });
}
