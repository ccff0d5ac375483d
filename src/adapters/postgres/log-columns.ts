import { ratesFor } from '../../core/answer/cost.ts';
import { attemptRow } from '../../core/attempt-record.ts';
import { candidateFate } from '../../core/candidate-fate.ts';
import type { SettledRequest } from '../../core/settled-request.ts';
import { errorText, shownModel, shownProvider, targetText } from '../../core/settled-request.ts';

/** One column of `request_logs`: the insert, the spool's lines and the test against the schema follow from it. */
export interface LogColumn {
  readonly name: string;
  /** The type that the insert reads it as. */
  readonly type: string;
  /** Its value as JSON text. */
  readonly json: (settled: SettledRequest) => string;
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

/** Text of a form that needs no escaping: ids, hashes, names of closed lists. */
const plain = (text: string): string => `"${text}"`;
const plainOrNull = (text: string | null): string => (text === null ? 'null' : plain(text));

/** `["tried openai:gpt-6", "no_key sarvam:sarvam-105b"]`: the tier in its order, each with what became of it. */
function fatesJson(settled: SettledRequest): string {
  const { tier } = settled;
  if (tier === null) return 'null';
  return anyJson(tier.map((target) => `${candidateFate(target, settled)} ${targetText(target)}`));
}

/** Null where no answer was priced. */
function priceJson({ price, usage }: SettledRequest): string {
  return price === null ? 'null' : ratesFor(price, usage.inputTokens).rowJson;
}

/** Null where nothing was looked for. */
function cacheJson({ cachedFrom, cacheMissed }: SettledRequest): string {
  if (cachedFrom === null) return cacheMissed ? '{"result":"miss"}' : 'null';
  const { requestId, traceId } = cachedFrom;
  return `{"result":"hit","request_id":${plainOrNull(requestId)},"trace_id":${plainOrNull(traceId)}}`;
}

/** All columns but the id, which the table gives, and the time, which the insert makes of `created_micros`. */
export const logColumns: readonly LogColumn[] = [
  { name: 'row_id', type: 'uuid', json: ({ rowId }) => plain(rowId) },
  { name: 'user_id', type: 'uuid', json: ({ userId }) => plain(userId) },
  { name: 'request_id', type: 'text', json: ({ requestId }) => plain(requestId) },
  { name: 'mode', type: 'text', json: ({ mode }) => plain(mode) },
  { name: 'provider', type: 'text', json: (settled) => plain(shownProvider(settled)) },
  { name: 'model', type: 'text', json: (settled) => anyJson(shownModel(settled)) },
  { name: 'key_id', type: 'uuid', json: ({ keyId }) => plainOrNull(keyId) },
  { name: 'usage_reported', type: 'boolean', json: ({ usage }) => String(usage.basis !== 'none') },
  { name: 'usage_basis', type: 'text', json: ({ usage }) => plain(usage.basis) },
  { name: 'input_tokens', type: 'bigint', json: ({ usage }) => String(usage.inputTokens) },
  { name: 'output_tokens', type: 'bigint', json: ({ usage }) => String(usage.outputTokens) },
  { name: 'cached_input_tokens', type: 'bigint', json: ({ usage }) => String(usage.cachedInputTokens) },
  { name: 'cache_write_tokens', type: 'bigint', json: ({ usage }) => String(usage.cacheWriteTokens) },
  {
    name: 'cache_write_long_tokens',
    type: 'bigint',
    json: ({ usage }) => String(usage.cacheWriteLongTokens),
  },
  { name: 'reasoning_tokens', type: 'bigint', json: ({ usage }) => String(usage.reasoningTokens) },
  { name: 'latency_ms', type: 'integer', json: ({ latencyMs }) => String(latencyMs) },
  { name: 'ttft_ms', type: 'integer', json: ({ ttftMs }) => String(ttftMs) },
  { name: 'cost_micro_usd', type: 'bigint', json: ({ costMicroUsd }) => String(costMicroUsd) },
  { name: 'saved_micro_usd', type: 'bigint', json: ({ savedMicroUsd }) => String(savedMicroUsd) },
  { name: 'cache_hit', type: 'boolean', json: ({ cachedFrom }) => String(cachedFrom !== null) },
  { name: 'stream', type: 'boolean', json: ({ stream }) => String(stream) },
  { name: 'status', type: 'text', json: ({ end }) => plain(end.status) },
  { name: 'error', type: 'text', json: ({ end }) => anyJson(errorText(end)) },
  {
    name: 'residency_requested',
    type: 'text',
    json: ({ residencyRequested }) => plainOrNull(residencyRequested),
  },
  { name: 'residency_actual', type: 'text', json: ({ residencyActual }) => plain(residencyActual) },
  { name: 'attempts', type: 'jsonb', json: ({ candidates }) => anyJson(candidates.map(attemptRow)) },
  { name: 'candidates', type: 'jsonb', json: fatesJson },
  { name: 'price', type: 'jsonb', json: priceJson },
  { name: 'cache', type: 'jsonb', json: cacheJson },
  { name: 'tables_version', type: 'text', json: ({ tablesVersion }) => plain(tablesVersion) },
  { name: 'trace_id', type: 'text', json: ({ traceId }) => plainOrNull(traceId) },
];

/** With what stands before each value. */
const members = logColumns.map(({ name, json }) => ({ before: `,"${name}":`, json }));

/** The row as one line of JSON: what the insert reads, the spool keeps, and is printed when nothing else is left. */
export function encodeLogRow(settled: SettledRequest): string {
  let text = `{"created_micros":${settled.createdAtMicros}`;
  for (const { before, json } of members) text += before + json(settled);
  return `${text}}`;
}

/** The same line, of a row that rollups do not tell apart by its model. */
export function asOther(line: string): string {
  return `{"is_other":true,${line.slice(1)}`;
}
