import type pg from 'pg';
import { largestBigint } from '../../core/largest-bigint.ts';
import type { ListedRow } from '../../core/log/log-columns.ts';
import { listColumns } from '../../core/log/log-columns.ts';
import { earliestMicros, formatTimestampMicros } from '../../core/timestamp.ts';
import type { RawLogRow } from './log-row-reader.ts';
import { logRowReader } from './log-row-reader.ts';
import { withDatabase } from './pool.ts';

const { select, row } = logRowReader(listColumns);

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
  /** Null: of every request. */
  readonly requestId: string | null;
  /** 1 to 1000, checked by the caller. */
  readonly limit: number;
}

/**
 * Every bound is always there, the widest when there is none, so that one plan serves all pages. The
 * plain bound on created_at repeats the row comparison for partition pruning, which does not read it.
 */
const pageSql = (condition: string): string => `
  SELECT ${select}
  FROM request_logs
  WHERE user_id = $1${condition} AND created_at >= $2::timestamptz AND created_at <= $3::timestamptz
    AND (created_at, id) < ($3::timestamptz, $4::bigint)
  ORDER BY created_at DESC, id DESC
  LIMIT $5`;
const anyPageSql = pageSql('');
const requestPageSql = pageSql(' AND request_id = $6');

const earliest = '-infinity';
const latest = 'infinity';

/**
 * A page is looked for in so much time first. Each partition that a page may be in costs planning and a look at its
 * index, a hundred of them ten times as much as two, and who calls often has a page within two weeks.
 */
const nearMicros = 14n * 86_400_000_000n;

/** Where the near part of a page begins; null where it is all of it. */
function nearFrom({ sinceMicros, after, requestId }: LogRowsQuery, nowMicros: bigint): bigint | null {
  if (requestId !== null) return null;
  const from = (after?.createdAtMicros ?? nowMicros) - nearMicros;
  return from < (sinceMicros ?? earliestMicros) ? null : from;
}

async function readPage(pool: pg.Pool, userId: string, query: LogRowsQuery): Promise<readonly ListedRow[]> {
  const { sinceMicros, after, requestId, limit } = query;
  const { rows } = await withDatabase(() =>
    pool.query<RawLogRow>(requestId === null ? anyPageSql : requestPageSql, [
      userId,
      sinceMicros === null ? earliest : formatTimestampMicros(sinceMicros),
      after === null ? latest : formatTimestampMicros(after.createdAtMicros),
      after === null ? largestBigint.toString() : after.id.toString(),
      limit,
      ...(requestId === null ? [] : [requestId]),
    ]),
  );
  return rows.map(row);
}

/** The user's rows of one page, newest first. Throws StoreAway. */
export async function readLogRows(
  pool: pg.Pool,
  userId: string,
  query: LogRowsQuery,
): Promise<readonly ListedRow[]> {
  const from = nearFrom(query, BigInt(Date.now()) * 1000n);
  if (from !== null) {
    const near = await readPage(pool, userId, { ...query, sinceMicros: from });
    if (near.length === query.limit) return near;
  }
  return readPage(pool, userId, query);
}
