import pg from 'pg';
import { pgOptions } from './connection-options.ts';

const connectTimeoutMs = 5_000;
/** Rows that are held at once: a few megabytes. */
const portionRows = 5_000;
/** For one portion, whatever else the server has to do. */
const portionTimeoutMs = 60_000;

/**
 * All rows of a query as they stand at its start, portion by portion, on a connection of its own: nothing is written,
 * which the server is told, and no more than a portion is held. `purpose` is seen in `pg_stat_activity`. Rejects with
 * the error of `pg`. While it runs the server keeps what others delete.
 */
export async function* readThroughCursor<Row extends pg.QueryResultRow>(
  url: string,
  purpose: string,
  query: { readonly text: string; readonly values: readonly unknown[] },
): AsyncGenerator<readonly Row[]> {
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
    await client.query(`DECLARE portions NO SCROLL CURSOR FOR ${query.text}`, [...query.values]);
    for (;;) {
      const { rows } = await client.query<Row>(`FETCH ${portionRows} FROM portions`);
      if (rows.length > 0) yield rows;
      if (rows.length < portionRows) return;
    }
  } finally {
    await client.end().catch(() => {});
  }
}
