import type { z } from 'zod';
import { formatMicroUsd } from '../answer/cost.ts';
import type { LogColumn, LogColumnName, StoredRow } from './log-columns.ts';
import { logColumns } from './log-columns.ts';

/** Columns as API and files show them: under their own names, but for amounts, which are in dollars. */

type Columns = typeof logColumns;

export type ShownName<Name extends string> = Name extends `${infer What}_micro_usd` ? `${What}_usd` : Name;

const shownName = (name: LogColumnName): string => name.replace(/_micro_usd$/, '_usd');

type Shapes<Name extends LogColumnName> = {
  readonly [Key in Name as ShownName<Key>]: Columns[Key]['shape'];
};

/** What is shown of these columns, for a schema. */
export function shapesOf<Name extends LogColumnName>(names: readonly Name[]): Shapes<Name> {
  return Object.fromEntries(names.map((name) => [shownName(name), logColumns[name].shape])) as Shapes<Name>;
}

export type ShownFields<Name extends LogColumnName> = {
  readonly [Key in Name as ShownName<Key>]: z.output<Columns[Key]['shape']>;
};

/** Shows these columns of rows, in this order. */
export function fieldsShown<Name extends LogColumnName>(
  names: readonly Name[],
): (row: StoredRow<Name>) => ShownFields<Name> {
  const fields = names.map((name) => {
    const { kind }: LogColumn = logColumns[name];
    return { name, shown: shownName(name), isAmount: kind === 'microUsd' };
  });
  return (row) => {
    const values: Record<string, unknown> = {};
    for (const { name, shown, isAmount } of fields) {
      const value: unknown = row[name];
      values[shown] = isAmount ? formatMicroUsd(value as bigint) : value;
    }
    return values as ShownFields<Name>;
  };
}
