import type pg from 'pg';
import type { StoredRow } from '../../core/log/log-columns.ts';
import { logColumnNames } from '../../core/log/log-columns.ts';
import type { RawLogRow } from './log-row-reader.ts';
import { logRowReader } from './log-row-reader.ts';
import { withDatabase } from './pool.ts';

const { select, row } = logRowReader(logColumnNames);

const rowSql = `SELECT ${select} FROM request_logs WHERE id = $2 AND user_id = $1`;

/** The row of this id, if it is the user's; null for any other. Throws StoreAway. */
export async function readLogRow(pool: pg.Pool, userId: string, id: bigint): Promise<StoredRow | null> {
  const { rows } = await withDatabase(() => pool.query<RawLogRow>(rowSql, [userId, id.toString()]));
  const [raw] = rows;
  return raw === undefined ? null : row(raw);
}
