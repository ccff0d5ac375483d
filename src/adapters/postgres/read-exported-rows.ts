import type { ExportedRow } from '../../core/log/exported-line.ts';
import { exportColumns } from '../../core/log/log-columns.ts';
import type { Period } from '../../core/timestamp.ts';
import { logRowReader } from './log-row-reader.ts';
import type { Portion } from './read-through-cursor.ts';
import { readThroughCursor } from './read-through-cursor.ts';

const { select, row } = logRowReader(exportColumns);

/** Every request of the period, oldest first. */
const sql = `
  SELECT ${select}
  FROM request_logs
  WHERE created_at >= $1::timestamptz AND created_at < $2::timestamptz
  ORDER BY created_at, id`;

/** The rows of all users in a period. As `readThroughCursor`. */
export const readExportedRows = (url: string, period: Period): AsyncGenerator<Portion<ExportedRow>> =>
  readThroughCursor(url, { purpose: 'export', sql, row }, period);
