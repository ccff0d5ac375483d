import type { ColumnKind, HeldBy } from '../../core/log/log-columns.ts';
import { plainJson, storableJson } from '../../core/log/stored-json.ts';
import type { BinaryForm } from './binary-forms.ts';
import { asBigint, asBoolean, asCount, asInteger, asJson, asText, asUuid } from './binary-forms.ts';

/** How values of a kind are written and read; the oids of their types are the same in every Postgres. */
interface StoredKind<Value> {
  readonly type: string;
  readonly oid: number;
  /** As JSON text. */
  readonly json: (value: Value) => string;
  /** As Postgres reads it fastest. */
  readonly form: BinaryForm;
  /** What `pg` gives, as `StoredRow` has it; as it is where there is none. Bigints arrive as text. */
  readonly read?: (text: string) => unknown;
}

const text: StoredKind<string> = { type: 'text', oid: 25, json: storableJson, form: asText };
const bigint = { type: 'bigint', oid: 20, json: String } as const;

export const columnKinds: { readonly [Kind in ColumnKind]: StoredKind<HeldBy[Kind]> } = {
  uuid: { type: 'uuid', oid: 2950, json: plainJson, form: asUuid },
  text,
  plain: { ...text, json: plainJson },
  boolean: { type: 'boolean', oid: 16, json: String, form: asBoolean },
  integer: { type: 'integer', oid: 23, json: String, form: asInteger },
  count: { ...bigint, form: asCount, read: Number },
  microUsd: { ...bigint, form: asBigint, read: BigInt },
  json: { type: 'jsonb', oid: 3802, json: (json) => json, form: asJson },
};
