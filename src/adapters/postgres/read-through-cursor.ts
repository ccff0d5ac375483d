import type pg from 'pg';
import type { Period } from '../../core/timestamp.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import { connectClient } from './host-choice.ts';
import type { RawLogRow } from './log-row-reader.ts';

const connectTimeoutMs = 5_000;
/** Rows that are held at once: a few megabytes. */
const portionRows = 5_000;
/** For one portion, whatever else the server has to do. */
const portionTimeoutMs = 60_000;

export interface Portion<Row> {
  readonly rows: readonly Row[];
  /** Microseconds since the epoch: where in time this portion ends. */
  readonly untilMicros: bigint;
}

/**
 * What `read` reads of one moment of the database, on a connection of its own: nothing is written, which the server is
 * told. `purpose` is seen in `pg_stat_activity`. Rejects with the error of `pg`. While it runs the server keeps what
 * others delete.
 */
export async function* inSnapshot<Part>(
  url: string,
  purpose: string,
  read: (client: pg.Client) => AsyncGenerator<Part>,
): AsyncGenerator<Part> {
  const client = await connectClient(url, `-${purpose}`, {
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: portionTimeoutMs,
    keepAlive: true,
  });
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await client.query(`SET LOCAL statement_timeout = ${portionTimeoutMs}`);
    yield* read(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** The rows of a query, portion by portion: no more than one is held. */
export async function* portionsOf<Row>(
  client: pg.Client,
  sql: string,
  values: readonly unknown[],
  row: (raw: RawLogRow) => Row,
): AsyncGenerator<Portion<Row>> {
  await client.query(`DECLARE portions NO SCROLL CURSOR FOR ${sql}`, [...values]);
  for (;;) {
    const { rows } = await client.query<RawLogRow>(`FETCH ${portionRows} FROM portions`);
    const last = rows.at(-1);
    if (last !== undefined) yield { rows: rows.map(row), untilMicros: BigInt(last.created_micros) };
    if (rows.length < portionRows) break;
  }
  await client.query('CLOSE portions');
}

/** A query of rows over a period, `$1` to `$2`, in the order of `created_micros`. */
export interface PeriodQuery<Row> {
  /** As `inSnapshot`. */
  readonly purpose: string;
  readonly sql: string;
  readonly row: (raw: RawLogRow) => Row;
}

/** All rows of a query. As `inSnapshot`. */
export function readThroughCursor<Row>(
  url: string,
  { purpose, sql, row }: PeriodQuery<Row>,
  { sinceMicros, untilMicros }: Period,
): AsyncGenerator<Portion<Row>> {
  const bounds = [formatTimestampMicros(sinceMicros), formatTimestampMicros(untilMicros)];
  return inSnapshot(url, purpose, (client) => portionsOf(client, sql, bounds, row));
}
