import { z } from 'zod';
import { usageBases } from '../answer/usage.ts';
import { residencyBinders } from '../request/residency.ts';
import { maxReasonLength } from '../secret/redact.ts';
import type { SettledRequest } from '../settled-request.ts';
import {
  requestStatuses,
  shownModel,
  shownProvider,
  shownProviders,
  shownResidencies,
} from '../settled-request.ts';
import { shownCount, usd } from '../shown-values.ts';
import { errorText } from './error-text.ts';
import type { StoredAttempts, StoredCacheUse, StoredFates, StoredPrice } from './stored-json.ts';
import { attemptsJson, cacheJson, fatesJson, priceJson } from './stored-json.ts';

/** What a column holds, by its kind. How a kind is written and read is its store's. */
export interface HeldBy {
  readonly uuid: string;
  /** Any text. */
  readonly text: string;
  /** Text of a form that needs no escaping: ids, hashes, names of closed lists. */
  readonly plain: string;
  readonly boolean: boolean;
  /** 32 bits. */
  readonly integer: number;
  /** Below 2^53. */
  readonly count: number;
  /** Shown in dollars, under a name that says so. */
  readonly microUsd: bigint;
  /** JSON text. */
  readonly json: string;
}
export type ColumnKind = keyof HeldBy;

/**
 * Where a column is seen under its own name, each with the next: `lists` is a row of `GET /v1/logs`, `details` what
 * `GET /v1/logs/{log_id}` says of it, `exports` the lines of the command `export`. What is seen `nowhere`, or only in
 * exports, may be a part of what the details say otherwise.
 */
export type SeenIn = 'lists' | 'details' | 'exports' | 'nowhere';

export interface LogColumn<
  Kind extends ColumnKind = ColumnKind,
  Shape extends z.ZodType = z.ZodType,
  Seen extends SeenIn = SeenIn,
> {
  readonly kind: Kind;
  /** What is stored of a request. */
  readonly of: (settled: SettledRequest) => HeldBy[Kind] | null;
  /** As it is shown; nullable also where rows of earlier releases have none. */
  readonly shape: Shape;
  readonly seenIn: Seen;
}

function column<Kind extends ColumnKind, Shape extends z.ZodType, Seen extends SeenIn>(
  kind: Kind,
  of: (settled: SettledRequest) => HeldBy[Kind] | null,
  shape: Shape,
  seenIn: Seen,
): LogColumn<Kind, Shape, Seen> {
  return { kind, of, shape, seenIn };
}

/** Of what is read by us alone, and was checked when it was written. */
const trusted = <Value>() => z.custom<Value>();

/** The type of new rows in the database. A change of the columns needs another: releases run side by side. */
export const newRowType = 'new_log_row_with_binder';

/**
 * The columns of `request_logs`, in the order of `newRowType`: inserts, the spool's lines, all readers and what
 * the API says of rows follow from it. Only the id, which the table gives, and the time stand beside it.
 */
export const logColumns = {
  row_id: column('uuid', ({ rowId }) => rowId, z.uuid(), 'nowhere'),
  user_id: column('uuid', ({ userId }) => userId, z.uuid(), 'exports'),
  request_id: column('plain', ({ requestId }) => requestId, z.string(), 'details'),
  mode: column('plain', ({ mode }) => mode, z.string(), 'lists'),
  provider: column('plain', shownProvider, z.enum(shownProviders), 'lists'),
  model: column('text', shownModel, z.string(), 'lists'),
  /** The provider key that served. */
  key_id: column('uuid', ({ keyId }) => keyId, z.uuid().nullable(), 'details'),
  usage_reported: column('boolean', ({ usage }) => usage.basis !== 'none', z.boolean(), 'nowhere'),
  usage_basis: column('plain', ({ usage }) => usage.basis, z.enum(usageBases).nullable(), 'exports'),
  input_tokens: column('count', ({ usage }) => usage.inputTokens, shownCount, 'lists'),
  output_tokens: column('count', ({ usage }) => usage.outputTokens, shownCount, 'lists'),
  cached_input_tokens: column('count', ({ usage }) => usage.cachedInputTokens, shownCount, 'exports'),
  cache_write_tokens: column('count', ({ usage }) => usage.cacheWriteTokens, shownCount, 'exports'),
  cache_write_long_tokens: column('count', ({ usage }) => usage.cacheWriteLongTokens, shownCount, 'exports'),
  reasoning_tokens: column('count', ({ usage }) => usage.reasoningTokens, shownCount, 'exports'),
  /** Whole milliseconds. */
  latency_ms: column('integer', ({ latencyMs }) => latencyMs, shownCount, 'lists'),
  /** Whole milliseconds. */
  ttft_ms: column('integer', ({ ttftMs }) => ttftMs, shownCount.nullable(), 'details'),
  cost_micro_usd: column('microUsd', ({ costMicroUsd }) => costMicroUsd, usd, 'lists'),
  saved_micro_usd: column('microUsd', ({ savedMicroUsd }) => savedMicroUsd, usd, 'details'),
  cache_hit: column('boolean', ({ cachedFrom }) => cachedFrom !== null, z.boolean(), 'lists'),
  stream: column('boolean', ({ stream }) => stream, z.boolean(), 'details'),
  status: column('plain', ({ end }) => end.status, z.enum(requestStatuses), 'lists'),
  error: column('text', ({ end }) => errorText(end), z.string().max(maxReasonLength).nullable(), 'lists'),
  residency_requested: column(
    'plain',
    ({ residencyBound }) => residencyBound,
    z.literal('india').nullable(),
    'lists',
  ),
  /** By whose word it had to stay in India. */
  residency_bound_by: column(
    'plain',
    ({ residencyBoundBy }) => residencyBoundBy,
    z.enum(residencyBinders).nullable(),
    'details',
  ),
  residency_actual: column(
    'plain',
    ({ residencyActual }) => residencyActual,
    z.enum(shownResidencies),
    'lists',
  ),
  attempts: column('json', attemptsJson, trusted<StoredAttempts>(), 'nowhere'),
  candidates: column('json', fatesJson, trusted<StoredFates>(), 'nowhere'),
  price: column('json', priceJson, trusted<StoredPrice>(), 'nowhere'),
  cache: column('json', cacheJson, trusted<StoredCacheUse>(), 'nowhere'),
  /** Of the tables that planned and priced the request; `x-gateway-tables-version` of its answer. */
  tables_version: column('plain', ({ tablesVersion }) => tablesVersion, z.string(), 'details'),
  trace_id: column('plain', ({ traceId }) => traceId, z.string().nullable(), 'details'),
} as const satisfies Readonly<Record<string, LogColumn>>;

type Columns = typeof logColumns;
export type LogColumnName = keyof Columns;
export const logColumnNames = Object.keys(logColumns) as readonly LogColumnName[];

type SeenName<Seen extends SeenIn> = {
  [Name in LogColumnName]: Columns[Name]['seenIn'] extends Seen ? Name : never;
}[LogColumnName];

/** In the order of the table. */
function seen<const Seen extends SeenIn>(...places: readonly Seen[]): readonly SeenName<Seen>[] {
  const isSeen = (name: LogColumnName): name is SeenName<Seen> =>
    (places as readonly SeenIn[]).includes(logColumns[name].seenIn);
  return logColumnNames.filter(isSeen);
}

export const listColumns = seen('lists');
/** What the details say beside what lists do. */
export const detailColumns = seen('details');
export const exportColumns = seen('lists', 'details', 'exports');

type StoredValue<Column> =
  Column extends LogColumn<'microUsd'>
    ? bigint
    : Column extends LogColumn<ColumnKind, infer Shape>
      ? z.output<Shape>
      : never;

/** Columns of a row, as they are read. */
export type StoredRow<Name extends LogColumnName = LogColumnName> = {
  readonly [Key in Name]: StoredValue<Columns[Key]>;
} & {
  readonly id: bigint;
  /** Since the epoch. */
  readonly created_micros: bigint;
};
export type ListedRow = StoredRow<(typeof listColumns)[number]>;
