import type { LogColumn, LogColumnName, StoredRow } from '../../core/log/log-columns.ts';
import { logColumns } from '../../core/log/log-columns.ts';
import { columnKinds } from './column-kinds.ts';
import { microsOf } from './sql-micros.ts';

/** A row of `request_logs` as `pg` gives it. */
export interface RawLogRow {
  readonly id: string;
  readonly created_micros: string;
  readonly [column: string]: unknown;
}

/** Reads columns of `request_logs`. */
export interface LogRowReader<Name extends LogColumnName> {
  /** What a query has to select. */
  readonly select: string;
  readonly row: (raw: RawLogRow) => StoredRow<Name>;
}

export function logRowReader<Name extends LogColumnName>(names: readonly Name[]): LogRowReader<Name> {
  const reads = names.map((name) => {
    const { kind }: LogColumn = logColumns[name];
    return { name, read: columnKinds[kind].read };
  });
  return {
    select: `id, ${names.join(', ')}, ${microsOf('created_at')} AS created_micros`,
    row: (raw) => {
      const row: Record<string, unknown> = {
        id: BigInt(raw.id),
        created_micros: BigInt(raw.created_micros),
      };
      for (const { name, read } of reads) {
        const value = raw[name];
        row[name] = read === undefined || value === null ? value : read(value as string);
      }
      return row as StoredRow<Name>;
    },
  };
}
