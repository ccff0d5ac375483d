import type { LogRowsQuery } from '../../adapters/postgres/read-log-rows.ts';
import type { LaterTurns } from '../../chat/later-turn.ts';
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

/** Rows of a page that are written in one turn of the event loop: a thousand of the widest take 8 ms of everybody's. */
export const rowsOfOneTurn = 100;

/** The JSON of a page, in parts. */
function* pageJson({ data, next_cursor }: LogPage): Generator<undefined, Buffer> {
  const parts: Buffer[] = [];
  for (let at = 0; at < data.length; at += rowsOfOneTurn) {
    const rows = JSON.stringify(data.slice(at, at + rowsOfOneTurn)).slice(1, -1);
    parts.push(Buffer.from(at === 0 ? `{"data":[${rows}` : `,${rows}`));
    yield;
  }
  parts.push(Buffer.from(`],"next_cursor":${JSON.stringify(next_cursor)}}`));
  return Buffer.concat(parts);
}

/** The same page, which a long one is written as in several turns. */
export async function writtenInTurns(
  page: LogPage,
  reply: { serializer(write: () => string): unknown },
  later: Pick<LaterTurns, 'run'>,
): Promise<LogPage> {
  if (page.data.length <= rowsOfOneTurn) return page;
  const json = await later.run(pageJson(page));
  // Fastify takes bytes as well; its types do not say so.
  reply.serializer(() => json as unknown as string);
  return page;
}
