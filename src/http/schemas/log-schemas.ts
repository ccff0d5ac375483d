import { z } from 'zod';
import { usageBases } from '../../core/answer/usage.ts';
import { candidateFates } from '../../core/candidate-fate.ts';
import { detailColumns, listColumns } from '../../core/log/log-columns.ts';
import { shapesOf } from '../../core/log/shown-columns.ts';
import { ipClasses } from '../../core/net/ip-class.ts';
import { residencies } from '../../core/request/residency.ts';
import { shownCount, shownInstant } from '../../core/shown-values.ts';
import { attemptFields } from './answer-fields.ts';

/** What the API answers of requests that are over; as `answer-schemas.ts`. */

const logRowSchema = z.strictObject({ id: z.int(), ...shapesOf(listColumns), created_at: shownInstant });

export const logPageSchema = z.strictObject({
  data: z.array(logRowSchema),
  next_cursor: z.string().nullable(),
});
export type LogPage = z.output<typeof logPageSchema>;

/** Dollars per million tokens. */
const rate = z.string().regex(/^\d+(\.\d{1,6})?$/);

/** A row and what explains it; null where nothing is to be said, or an earlier release wrote the row. */
export const explainedLogRowSchema = logRowSchema.extend({
  ...shapesOf(detailColumns),
  usage: z.strictObject({
    basis: z.enum(usageBases).nullable(),
    cached_input_tokens: shownCount,
    cache_write_tokens: shownCount,
    cache_write_long_tokens: shownCount,
    reasoning_tokens: shownCount,
  }),
  /** What priced the tokens. */
  price: z
    .strictObject({
      model: z.string(),
      input: rate,
      output: rate,
      cached_input: rate,
      cache_write: rate,
      cache_write_long: rate,
    })
    .nullable(),
  /** Null: none was looked for. Of a hit, which request had made the answer. */
  cache: z
    .strictObject({
      result: z.enum(['hit', 'miss']),
      from: z
        .strictObject({
          provider: z.string(),
          model: z.string(),
          request_id: z.string().nullable(),
          trace_id: z.string().nullable(),
        })
        .nullable(),
    })
    .nullable(),
  /** The tier in its order; null for an override. */
  candidates: z
    .array(z.strictObject({ provider: z.string(), model: z.string(), fate: z.enum(candidateFates) }))
    .nullable(),
  /** In their order, with those that were passed over for what they lack. */
  attempts: z.array(
    z.strictObject({
      ...attemptFields,
      residency: z.enum(residencies).nullable(),
      /** What the owner of a self_hosted key said of its server. */
      declared_region: z.string().nullable(),
      /** Of the address that its connection led to; null where none was made. */
      address_class: z.enum(ipClasses).nullable(),
      key_id: z.uuid().nullable(),
      usage: z
        .strictObject({ basis: z.enum(usageBases), input_tokens: shownCount, output_tokens: shownCount })
        .nullable(),
    }),
  ),
});
