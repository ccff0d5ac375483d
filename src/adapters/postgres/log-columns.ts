import { ratesFor } from '../../core/answer/cost.ts';
import { attemptRow } from '../../core/attempt-record.ts';
import { candidateFate } from '../../core/candidate-fate.ts';
import type { SettledRequest, Target } from '../../core/settled-request.ts';
import { errorText, shownModel, shownProvider } from '../../core/settled-request.ts';
import type { Rates } from '../../core/tables/price.ts';
import { pricedBy } from '../../core/tables/price.ts';
import { BinaryRows } from './binary-row.ts';

/** A settled request as the log takes it. */
export interface LogRow {
  readonly settled: SettledRequest;
  /** Its model is not told apart in sums. */
  readonly isOther: boolean;
}

/** One column of `request_logs`: both inserts, the spool's lines and the test against the schema follow from it. */
export interface LogColumn {
  readonly name: string;
  /** The type that the insert reads it as. */
  readonly type: string;
  /** Its value as JSON text. */
  readonly json: (settled: SettledRequest) => string;
  /** Its value, with its type, as Postgres reads it fastest. */
  readonly write: (rows: BinaryRows, settled: SettledRequest) => void;
}

/** What Postgres text and jsonb cannot hold, as JSON writes it: NUL and halves of surrogate pairs. */
const unstorable = /\\u(?:0000|d[89a-f])/;
const nul = /\0/g;

function storable(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed().replace(nul, '\uFFFD') : value;
}

/** Any value; text that Postgres cannot store is replaced by U+FFFD. */
function anyJson(value: unknown): string {
  if (value === null) return 'null';
  const text = JSON.stringify(value);
  return unstorable.test(text) ? JSON.stringify(value, storable) : text;
}

/** How values of a type are written; their oids are the same in every Postgres. */
interface Kind<Value> {
  readonly type: string;
  readonly oid: number;
  readonly json: (value: Value) => string;
  readonly write: (rows: BinaryRows, value: Value) => void;
}

const uuid: Kind<string> = {
  type: 'uuid',
  oid: 2950,
  json: (text) => `"${text}"`,
  write: (rows, text) => rows.uuid(text),
};
/** Any text. */
const text: Kind<string> = { type: 'text', oid: 25, json: anyJson, write: (rows, value) => rows.text(value) };
/** Text of a form that needs no escaping: ids, hashes, names of closed lists. */
const plain: Kind<string> = { ...text, json: uuid.json };
const boolean: Kind<boolean> = {
  type: 'boolean',
  oid: 16,
  json: String,
  write: (rows, value) => rows.boolean(value),
};
const integer: Kind<number> = {
  type: 'integer',
  oid: 23,
  json: String,
  write: (rows, value) => rows.int4(value),
};
const bigint: Kind<number | bigint> = {
  type: 'bigint',
  oid: 20,
  json: String,
  write: (rows, value) => rows.int8(value),
};
/** Of JSON text. */
const jsonb: Kind<string> = {
  type: 'jsonb',
  oid: 3802,
  json: (json) => json,
  write: (rows, json) => rows.jsonb(json),
};
const timestamptzOid = 1184;

function column<Value>(
  name: string,
  { type, oid, json, write }: Kind<Value>,
  read: (settled: SettledRequest) => Value | null,
): LogColumn {
  return {
    name,
    type,
    json: (settled) => {
      const value = read(settled);
      return value === null ? 'null' : json(value);
    },
    write: (rows, settled) => {
      rows.type(oid);
      const value = read(settled);
      if (value === null) rows.none();
      else write(rows, value);
    },
  };
}

/** What fates are written behind, one text for each candidate of a tier: the same for all its requests. */
const beforeFates = new WeakMap<readonly Target[], readonly string[]>();

function beforeFatesOf(tier: readonly Target[]): readonly string[] {
  const known = beforeFates.get(tier);
  if (known !== undefined) return known;
  const made = tier.map(
    ({ provider, model }, index) =>
      `${index === 0 ? '' : '},'}{"provider":${plain.json(provider)},"model":${anyJson(model)},"fate":`,
  );
  beforeFates.set(tier, made);
  return made;
}

/** `[{"provider":"openai","model":"gpt-6","fate":"tried"}]`: the tier in its order, each with what became of it. */
function fatesJson(settled: SettledRequest): string | null {
  const { tier } = settled;
  if (tier === null) return null;
  const before = beforeFatesOf(tier);
  let text = '[';
  for (let index = 0; index < tier.length; index += 1) {
    text += before[index] + plain.json(candidateFate(tier[index] as Target, settled));
  }
  return tier.length === 0 ? '[]' : `${text}}]`;
}

/** Rates as rows keep them, JSON of `PricedBy`: put together once for all that they price. */
const ratesJson = new WeakMap<Rates, string>();

/** Null where no answer was priced. */
function priceJson({ price, usage }: SettledRequest): string | null {
  if (price === null) return null;
  const rates = ratesFor(price, usage.inputTokens);
  let json = ratesJson.get(rates);
  if (json === undefined) {
    json = anyJson(pricedBy(price, rates));
    ratesJson.set(rates, json);
  }
  return json;
}

/** Null where nothing was looked for. */
function cacheJson({ cache, cachedFrom }: SettledRequest): string | null {
  if (cachedFrom === null) return cache === 'miss' ? '{"result":"miss"}' : null;
  const { provider, model, requestId, traceId } = cachedFrom;
  const quoted = (id: string | null): string => (id === null ? 'null' : plain.json(id));
  const origin = `"provider":${plain.json(provider)},"model":${anyJson(model)}`;
  return `{"result":"hit",${origin},"request_id":${quoted(requestId)},"trace_id":${quoted(traceId)}}`;
}

/** All columns but the id, which the table gives, and the time, which the insert makes of `created_micros`. */
export const logColumns: readonly LogColumn[] = [
  column('row_id', uuid, ({ rowId }) => rowId),
  column('user_id', uuid, ({ userId }) => userId),
  column('request_id', plain, ({ requestId }) => requestId),
  column('mode', plain, ({ mode }) => mode),
  column('provider', plain, shownProvider),
  column('model', text, shownModel),
  column('key_id', uuid, ({ keyId }) => keyId),
  column('usage_reported', boolean, ({ usage }) => usage.basis !== 'none'),
  column('usage_basis', plain, ({ usage }) => usage.basis),
  column('input_tokens', bigint, ({ usage }) => usage.inputTokens),
  column('output_tokens', bigint, ({ usage }) => usage.outputTokens),
  column('cached_input_tokens', bigint, ({ usage }) => usage.cachedInputTokens),
  column('cache_write_tokens', bigint, ({ usage }) => usage.cacheWriteTokens),
  column('cache_write_long_tokens', bigint, ({ usage }) => usage.cacheWriteLongTokens),
  column('reasoning_tokens', bigint, ({ usage }) => usage.reasoningTokens),
  column('latency_ms', integer, ({ latencyMs }) => latencyMs),
  column('ttft_ms', integer, ({ ttftMs }) => ttftMs),
  column('cost_micro_usd', bigint, ({ costMicroUsd }) => costMicroUsd),
  column('saved_micro_usd', bigint, ({ savedMicroUsd }) => savedMicroUsd),
  column('cache_hit', boolean, ({ cachedFrom }) => cachedFrom !== null),
  column('stream', boolean, ({ stream }) => stream),
  column('status', plain, ({ end }) => end.status),
  column('error', text, ({ end }) => errorText(end)),
  column('residency_requested', plain, ({ residencyRequested }) => residencyRequested),
  column('residency_bound_by', plain, ({ residencyBoundBy }) => residencyBoundBy),
  column('residency_actual', plain, ({ residencyActual }) => residencyActual),
  column('attempts', jsonb, ({ candidates }) => anyJson(candidates.map(attemptRow))),
  column('candidates', jsonb, fatesJson),
  column('price', jsonb, priceJson),
  column('cache', jsonb, cacheJson),
  column('tables_version', plain, ({ tablesVersion }) => tablesVersion),
  column('trace_id', plain, ({ traceId }) => traceId),
];

/** With what stands before each value. */
const members = logColumns.map(({ name, json }) => ({ before: `,"${name}":`, json }));

/** The row as one line of JSON: what the insert reads, the spool keeps, and is printed when nothing else is left. */
export function encodeLogRow(settled: SettledRequest): string {
  let text = `{"created_micros":${settled.createdAtMicros}`;
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
 * Rows as an array of the type of new rows, whose oid is `type`: the time and whether it is another model, then the
 * columns. Throws RangeError for a value that its column cannot hold.
 */
export function binaryRows(type: number, logRows: readonly LogRow[]): Buffer {
  const rows = new BinaryRows(type, logRows.length);
  for (const { settled, isOther } of logRows) {
    rows.begin(logColumns.length + 2);
    rows.type(timestamptzOid);
    rows.instant(settled.createdAtMicros);
    rows.type(boolean.oid);
    rows.boolean(isOther);
    for (const { write } of logColumns) write(rows, settled);
    rows.end();
  }
  return rows.finish();
}
