import pg from 'pg';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import { pgOptions } from './connection-options.ts';

const connectTimeoutMs = 5_000;
/** Rows that are held at once: a few megabytes. */
const portionRows = 5_000;
/** For one portion, whatever else the server has to do. */
const portionTimeoutMs = 60_000;

/** Microseconds since the epoch; `untilMicros` is exclusive. */
export interface ReadPeriod {
  readonly sinceMicros: bigint;
  readonly untilMicros: bigint;
}

export interface Portion<Row> {
  readonly rows: readonly Row[];
  /** Microseconds since the epoch: where in time this portion ends. */
  readonly untilMicros: bigint;
}

/**
 * All rows of a query over a period, `$1` to `$2` in the order of `created_micros`, as they stand at its start, portion
 * by portion, on a connection of its own: nothing is written, which the server is told, and no more than a portion is
 * held. `purpose` is seen in `pg_stat_activity`. Rejects with
 * the error of `pg`. While it runs the server keeps what others delete.
 */
export async function* readThroughCursor<Row extends { readonly created_micros: string }>(
  url: string,
  purpose: string,
  sql: string,
  { sinceMicros, untilMicros }: ReadPeriod,
): AsyncGenerator<Portion<Row>> {
  const client = new pg.Client({
    ...pgOptions(url, `-${purpose}`),
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: portionTimeoutMs,
    keepAlive: true,
  });
  client.on('error', () => {}); // the query in flight reports it
  try {
    await client.connect();
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await client.query(`SET LOCAL statement_timeout = ${portionTimeoutMs}`);
    const bounds = [formatTimestampMicros(sinceMicros), formatTimestampMicros(untilMicros)];
    await client.query(`DECLARE portions NO SCROLL CURSOR FOR ${sql}`, bounds);
    for (;;) {
      const { rows } = await client.query<Row>(`FETCH ${portionRows} FROM portions`);
      const last = rows.at(-1);
      if (last !== undefined) yield { rows, untilMicros: BigInt(last.created_micros) };
      if (rows.length < portionRows) return;
    }
  } finally {
    await client.end().catch(() => {});
  }
}
