import { z } from 'zod';
import { ipClasses } from '../net/ip-class.ts';
import { residencies, residencyBinders } from '../request/residency.ts';
import { requestStatuses } from '../settled-request.ts';
import { shownInstant } from '../shown-values.ts';
import { countsSchema, servedPlaces } from './evidence-counts.ts';
import { beginning } from './sealed-line.ts';

/** What the lines of a report hold: one header, the requests of each hour and its own line, one end. */

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const signature = z.string().optional();

const headerSchema = z.strictObject({
  kind: z.literal('header'),
  format: z.literal(beginning),
  /** The release that wrote it. */
  gateway: z.string(),
  /** The period; `to` is not in it. */
  from: shownInstant,
  to: shownInstant,
  /** Null: all users. */
  user_id: z.uuid().nullable(),
  /** Where the operator says that rows are kept. */
  storage_region: z.string().nullable(),
  /** All rows are as they stood then. */
  read_at: shownInstant,
  /** What was settled before has its row, but for what a gateway holds in its spool. */
  complete_until: shownInstant,
  /** The log goes back to here: retention has dropped what was before. Null: it is empty. */
  oldest_row: shownInstant.nullable(),
  /** SPKI, base64. */
  public_key: z.string(),
  hash,
});
export type ReportHeader = z.output<typeof headerSchema>;

const attemptSchema = z.strictObject({
  provider: z.string(),
  model: z.string(),
  key_id: z.string().nullable(),
  residency: z.enum(residencies).nullable(),
  declared_region: z.string().nullable(),
  address_class: z.enum(ipClasses).nullable(),
  status: z.int().nullable(),
  /** Null: it was passed over, nobody was asked. */
  end: z.enum(['served', 'failed', 'cut', 'cancelled']).nullable(),
});

const requestSchema = z.strictObject({
  kind: z.literal('request'),
  /** From 1, through the whole report. */
  number: z.int().min(1),
  id: z.int(),
  created_at: shownInstant,
  user_id: z.uuid(),
  request_id: z.string(),
  mode: z.string(),
  /** Null: a release that did not keep it. */
  bound_by: z.enum(residencyBinders).nullable(),
  status: z.enum(requestStatuses),
  /** The type of its error. */
  error: z.string().nullable(),
  served_in: z.enum(servedPlaces),
  provider: z.string(),
  model: z.string(),
  key_id: z.string().nullable(),
  address_class: z.enum(ipClasses).nullable(),
  /** Whose answer it was, where it came from the cache. */
  cached_from: z
    .strictObject({ provider: z.string(), model: z.string(), request_id: z.string().nullable() })
    .nullable(),
  tables_version: z.string(),
  attempts: z.array(attemptSchema),
  hash,
});
export type ReportRequest = z.output<typeof requestSchema>;

const hourSchema = z.strictObject({
  kind: z.literal('hour'),
  hour: shownInstant,
  ...countsSchema.shape,
  /** Of the hour's last request; of the hour before where it has none. */
  requests_hash: hash,
  /** Of the hour's line before, or of the header. */
  previous: hash,
  hash,
});

const endSchema = z.strictObject({
  kind: z.literal('end'),
  hours: z.int().min(1),
  ...countsSchema.shape,
  /** Of the last hour's line. */
  previous: hash,
  hash,
  signature,
});
export type ReportEnd = z.output<typeof endSchema>;

/** Any line, by its kind. */
export const reportLineSchema = z.discriminatedUnion('kind', [
  headerSchema,
  requestSchema,
  hourSchema,
  endSchema,
]);
export type ReportLine = z.output<typeof reportLineSchema>;
