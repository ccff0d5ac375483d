import type pg from 'pg';
import { newRowType } from '../../core/log/log-columns.ts';
import { otherName } from '../../core/other-name.ts';
import { BinaryStatement, runStatement } from './binary-statement.ts';
import type { LogRow } from './encode-log-rows.ts';
import { binaryRows, encodedColumns, lineIfTold } from './encode-log-rows.ts';
import { isAway, isCheckViolation } from './pool.ts';
import { unsummedColumns } from './rollup-sums.ts';

const names = encodedColumns.map(({ name }) => name).join(', ');
const recordset = encodedColumns.map(({ name, type }) => `${name} ${type}`).join(', ');
const insertRows = `INSERT INTO request_logs (created_at, ${names}) SELECT created_at, ${names} FROM input`;

const modelOrOther = `CASE WHEN is_other THEN '${otherName}' ELSE model END`;

/** What is to be summed of the rows that were inserted; rollup-keeper.ts does it. */
const insertUnsummed = `INSERT INTO unsummed_requests (${unsummedColumns.join(', ')})
  SELECT ${unsummedColumns.map((name) => (name === 'model' ? modelOrOther : name)).join(', ')} FROM input`;

/**
 * Of rows that are known to be new: fails as a whole where one is not. They come in the order of `insertSql`, since a
 * row may be in both at once, when it was spooled while its commit was still under way.
 */
const newSql = `
WITH input AS (
  SELECT created_at, is_other, ${names} FROM unnest($1::${newRowType}[])
), inserted AS (
  ${insertRows}
)
${insertUnsummed}`;

/**
 * Of rows that may be there: those that are new, and what is to be summed of exactly these. In one order, so that two
 * writers of the same rows never wait for each other in a circle. Microseconds times an interval of one microsecond is
 * exact below 2^53.
 */
const insertSql = `
WITH input AS (
  SELECT DISTINCT ON (row_id)
    'epoch'::timestamptz + created_micros * interval '1 microsecond' AS created_at, is_other, ${names}
  FROM json_to_recordset($1::json) AS t (created_micros bigint, is_other boolean, ${recordset})
  ORDER BY row_id
), inserted AS (
  ${insertRows}
  ON CONFLICT (created_at, row_id) DO NOTHING
  RETURNING row_id
), unsummed AS (
  ${insertUnsummed} WHERE row_id IN (SELECT row_id FROM inserted)
)
SELECT count(*)::integer AS inserted FROM inserted`;

/**
 * Inserts rows (of `encodeLogRow`) that are not there yet, and what is to be summed of them, in one transaction.
 * Returns how many rows were new. Rejects with the error of `pg`.
 *
 * The statement is prepared once per connection, since planning it costs the server more than running it
 * for a few rows. So `pool`, or a client of it, needs direct connections, not a transaction-mode pooler.
 */
export async function insertLogRows(
  pool: Pick<pg.ClientBase, 'query'>,
  rows: readonly string[],
): Promise<number> {
  const insert = { name: 'insert-log-rows', text: insertSql, values: [`[${rows.join(',')}]`] };
  let result: pg.QueryResult<{ inserted: number }>;
  try {
    result = await pool.query(insert);
  } catch (error) {
    // A row was on its way to the default partition when the partition it belongs to was attached: it finds that one
    // the next time. The table has no other check.
    if (!isCheckViolation(error)) throw error;
    result = await pool.query(insert);
  }
  return result.rows[0]?.inserted ?? 0;
}

/**
 * Commits rows that nobody has inserted before, but for those that cannot be told: resolves to where these are in
 * `rows`. Rejects with the error of `pg`; nothing is kept then.
 */
export type InsertNewRows = (rows: readonly LogRow[]) => Promise<readonly number[]>;

const nowhere: readonly number[] = [];

/**
 * The same for rows that are new, at half the cost to the server: read in binary form, without looking for those that
 * are there. Whatever it refuses is inserted the other way: a row that the spool's replay was faster with, a value
 * beyond its column, a partition attached meanwhile, those in a batch with one that cannot be told. `onRefused`
 * hears of each such batch: the rows are there all the same, and nothing else shows a fast way that is dead.
 */
export function newRowsInto(pool: pg.Pool, onRefused: (error: unknown) => void): InsertNewRows {
  let type: number | null = null;
  return async (rows) => {
    try {
      type ??= await newRowTypeOid(pool);
      const value = binaryRows(type, rows.toSorted(byRowId));
      await runStatement(pool, new BinaryStatement('insert-new-rows', newSql, value));
      return nowhere;
    } catch (error) {
      if (isAway(error)) throw error;
      type = null;
      onRefused(error);
      return insertLines(pool, rows.map(lineIfTold));
    }
  };
}

/** As Postgres orders ids, which are in small letters. */
function byRowId(a: LogRow, b: LogRow): number {
  return a.settled.rowId < b.settled.rowId ? -1 : 1;
}

/** Resolves to where there is no line. */
async function insertLines(pool: pg.Pool, lines: readonly (string | null)[]): Promise<readonly number[]> {
  const told = lines.filter((line) => line !== null);
  if (told.length > 0) await insertLogRows(pool, told);
  return lines.flatMap((line, at) => (line === null ? [at] : []));
}

/** Another in every database. */
async function newRowTypeOid(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ oid: string }>(`SELECT '${newRowType}'::regtype::oid::text AS oid`);
  return Number(rows[0]?.oid);
}
