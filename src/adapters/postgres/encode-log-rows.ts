import type { ColumnKind, HeldBy, LogColumn } from '../../core/log/log-columns.ts';
import { logColumnNames, logColumns } from '../../core/log/log-columns.ts';
import type { SettledRequest } from '../../core/settled-request.ts';
import type { BinaryColumn } from './binary-row.ts';
import { BinaryRows } from './binary-row.ts';
import { columnKinds } from './column-kinds.ts';

/** A settled request as the log takes it. */
export interface LogRow {
  readonly settled: SettledRequest;
  /** Its model is not told apart in sums. */
  readonly isOther: boolean;
}

/** A column of `request_logs` as inserts need it. */
interface EncodedColumn extends BinaryColumn<SettledRequest> {
  readonly name: string;
  /** The type that the insert reads it as. */
  readonly type: string;
  /** Its value as JSON text. */
  readonly json: (settled: SettledRequest) => string;
}

const timestamptzOid = 1184;

function encoded<Kind extends ColumnKind>(name: string, { kind, of }: LogColumn<Kind>): EncodedColumn {
  const { type, oid, form, json } = columnKinds[kind];
  return {
    name,
    type,
    form,
    oid,
    of,
    json: (settled) => {
      const value: HeldBy[Kind] | null = of(settled);
      return value === null ? 'null' : json(value);
    },
  };
}

/** All but the id, which the table gives, and the time, which the insert makes of `created_micros`. */
export const encodedColumns: readonly EncodedColumn[] = logColumnNames.map((name) =>
  encoded(name, logColumns[name] as LogColumn),
);

/** With what stands before each value. */
const members = encodedColumns.map(({ name, json }) => ({ before: `,"${name}":`, json }));

const createdMicros: Pick<EncodedColumn, 'name' | 'json'> = {
  name: 'created_micros',
  json: ({ createdAtMicros }) => String(createdAtMicros),
};
const lineMembers = [createdMicros, ...encodedColumns];

/** The row as one line of JSON: what the insert reads, the spool keeps, and is printed when nothing else is left. */
export function encodeLogRow(settled: SettledRequest): string {
  let text = `{"${createdMicros.name}":${createdMicros.json(settled)}`;
  for (const { before, json } of members) text += before + json(settled);
  return `${text}}`;
}

/** The same line, of a row that sums do not tell apart by its model. */
export function asOther(line: string): string {
  return `{"is_other":true,${line.slice(1)}`;
}

export function lineOf({ settled, isOther }: LogRow): string {
  const line = encodeLogRow(settled);
  return isOther ? asOther(line) : line;
}

/**
 * The same; null where a column throws, which is a bug of ours: such a row must take neither the process nor other rows
 * with it, and `toldColumns` has what is left of it.
 */
export function lineIfTold(row: LogRow): string | null {
  try {
    return lineOf(row);
  } catch {
    return null;
  }
}

/** As much of a row's line as can be told, and why which columns cannot. */
export function toldColumns(settled: SettledRequest): {
  readonly line: string;
  readonly missing: Readonly<Record<string, string>>;
} {
  const missing: Record<string, string> = {};
  const told = lineMembers.flatMap(({ name, json }) => {
    try {
      return `"${name}":${json(settled)}`;
    } catch (error) {
      missing[name] = String(error);
      return [];
    }
  });
  return { line: `{${told.join(',')}}`, missing };
}

/**
 * Rows as an array of the type of new rows, whose oid is `type`: the time and whether it is another model, then the
 * columns. Throws RangeError for a value that its column cannot hold.
 */
export function binaryRows(type: number, logRows: readonly LogRow[]): Buffer {
  const rows = new BinaryRows(type, logRows.length);
  for (const { settled, isOther } of logRows) {
    rows.begin(encodedColumns.length + 2);
    rows.instant(timestamptzOid, settled.createdAtMicros);
    rows.boolean(columnKinds.boolean.oid, isOther);
    rows.columns(encodedColumns, settled);
    rows.end();
  }
  return rows.finish();
}
