import type pg from 'pg';
import { largestBigint } from '../../core/largest-bigint.ts';
import type { ResidencyRequest } from '../../core/request/residency.ts';
import type { RequestStatus, ShownProvider, ShownResidency } from '../../core/settled-request.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import { withDatabase } from './pool.ts';

const asIs = <Value>(value: Value): Value => value;

/** What `GET /v1/logs` shows of a row: each column by its name, and how its value is read. Bigints arrive as text. */
const columns = {
  id: (text: string) => BigInt(text),
  mode: asIs<string>,
  provider: asIs<ShownProvider>,
  model: asIs<string>,
  input_tokens: (text: string) => Number(text),
  output_tokens: (text: string) => Number(text),
  /** Whole milliseconds. */
  latency_ms: asIs<number>,
  cost_micro_usd: (text: string) => BigInt(text),
  cache_hit: asIs<boolean>,
  status: asIs<RequestStatus>,
  error: asIs<string | null>,
  residency_requested: asIs<ResidencyRequest>,
  residency_actual: asIs<ShownResidency>,
} as const;
type Columns = typeof columns;
type Column = keyof Columns;

export type StoredLogRow = { readonly [Name in Column]: ReturnType<Columns[Name]> } & {
  /** Since the epoch. */
  readonly created_micros: bigint;
};

export type ShownRow = { readonly [Name in Column]: Parameters<Columns[Name]>[0] } & {
  readonly created_micros: string;
};

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

/** What `fromRow` reads. */
export const shownColumns = `${Object.keys(columns).join(', ')},
    (extract(epoch FROM created_at) * 1000000)::bigint AS created_micros`;

/**
 * Every bound is always there, the widest when there is none, so that one plan serves all pages. The
 * plain bound on created_at repeats the row comparison for partition pruning, which does not read it.
 */
const pageSql = (condition: string): string => `
  SELECT ${shownColumns}
  FROM request_logs
  WHERE user_id = $1${condition} AND created_at >= $2::timestamptz AND created_at <= $3::timestamptz
    AND (created_at, id) < ($3::timestamptz, $4::bigint)
  ORDER BY created_at DESC, id DESC
  LIMIT $5`;
const anyPageSql = pageSql('');
const requestPageSql = pageSql(' AND request_id = $6');

const earliest = '-infinity';
const latest = 'infinity';

export function fromRow(row: ShownRow): StoredLogRow {
  const values = Object.entries(columns).map(([name, read]) => [name, read(row[name as Column] as never)]);
  return { ...Object.fromEntries(values), created_micros: BigInt(row.created_micros) } as StoredLogRow;
}

/** The user's rows of one page, newest first. Throws StoreAway. */
export async function readLogRows(
  pool: pg.Pool,
  userId: string,
  { sinceMicros, after, requestId, limit }: LogRowsQuery,
): Promise<readonly StoredLogRow[]> {
  const { rows } = await withDatabase(() =>
    pool.query<ShownRow>(requestId === null ? anyPageSql : requestPageSql, [
      userId,
      sinceMicros === null ? earliest : formatTimestampMicros(sinceMicros),
      after === null ? latest : formatTimestampMicros(after.createdAtMicros),
      after === null ? largestBigint.toString() : after.id.toString(),
      limit,
      ...(requestId === null ? [] : [requestId]),
    ]),
  );
  return rows.map(fromRow);
}
