import type { ColumnKind, HeldBy } from '../../core/log/log-columns.ts';
import { plainJson, storableJson } from '../../core/log/stored-json.ts';
import type { BinaryRows } from './binary-row.ts';

/** How values of a kind are written and read; the oids of their types are the same in every Postgres. */
interface StoredKind<Value> {
  readonly type: string;
  readonly oid: number;
  /** As JSON text. */
  readonly json: (value: Value) => string;
  /** As Postgres reads it fastest. */
  readonly write: (rows: BinaryRows, value: Value) => void;
  /** What `pg` gives, as `StoredRow` has it; as it is where there is none. Bigints arrive as text. */
  readonly read?: (text: string) => unknown;
}

const text: StoredKind<string> = {
  type: 'text',
  oid: 25,
  json: storableJson,
  write: (rows, value) => rows.text(value),
};
const bigint = { type: 'bigint', oid: 20, json: String } as const;

export const columnKinds: { readonly [Kind in ColumnKind]: StoredKind<HeldBy[Kind]> } = {
  uuid: { type: 'uuid', oid: 2950, json: plainJson, write: (rows, value) => rows.uuid(value) },
  text,
  plain: { ...text, json: plainJson },
  boolean: { type: 'boolean', oid: 16, json: String, write: (rows, value) => rows.boolean(value) },
  integer: { type: 'integer', oid: 23, json: String, write: (rows, value) => rows.int4(value) },
  count: { ...bigint, write: (rows, value) => rows.int8(value), read: Number },
  microUsd: { ...bigint, write: (rows, value) => rows.int8(value), read: BigInt },
  json: { type: 'jsonb', oid: 3802, json: (json) => json, write: (rows, json) => rows.jsonb(json) },
};
