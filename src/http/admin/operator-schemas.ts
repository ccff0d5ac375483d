import { z } from 'zod';
import { limitChangesSchema, userLimitsSchema } from '../../core/limits/user-limits.ts';
import { shownCount, shownInstant, usd } from '../../core/shown-values.ts';
import {
  newServiceKeyRecordSchema,
  providerKeyRecordSchema,
  serviceKeyRecordSchema,
} from '../schemas/answer-schemas.ts';
import { pageLimit, parameter, queryInstant } from '../schemas/query-schemas.ts';

/** What operators get, on the admin port and from commands; and what they ask there. */

const residency = z
  .literal('india', 'must be "india" or null')
  .nullable()
  .describe('What the operator bound the user to.');

export const userRecordSchema = z.strictObject({
  user_id: z.uuid(),
  email: z.string(),
  created_at: shownInstant,
  disabled_at: shownInstant.nullable(),
  residency,
  limits: userLimitsSchema
    .nullable()
    .describe('Exceptions from the limits of the tables; null: there are none.'),
  service_keys: shownCount.describe('That are live.'),
  provider_keys: shownCount,
});
export type UserRecord = z.output<typeof userRecordSchema>;

/** `GET /admin/users`. */
export const usersQuerySchema = z.object({
  limit: pageLimit.optional(),
  cursor: parameter
    .regex(z.regexes.uuid(), 'must be the next_cursor of another page')
    .meta({ format: 'uuid', description: 'The next_cursor of the page before.' })
    .optional(),
});

export const userPageSchema = z.strictObject({
  data: z.array(userRecordSchema),
  next_cursor: z.uuid().nullable().describe('Null: this is the last page.'),
});

/** Without `current`: the operator authenticates with none of them. */
const serviceKeyFactsSchema = serviceKeyRecordSchema.omit({ current: true });
export type ServiceKeyFacts = z.output<typeof serviceKeyFactsSchema>;

/** Without what depends on the tables in use. */
const storedKeySchema = providerKeyRecordSchema.omit({ residency: true, created_at: true });
export type StoredKeyFacts = z.output<typeof storedKeySchema>;

export const shownUserSchema = z.strictObject({
  user: userRecordSchema,
  service_keys: z.array(serviceKeyFactsSchema),
  provider_keys: z.array(storedKeySchema),
});
export type ShownUser = z.output<typeof shownUserSchema>;

/** `PATCH /admin/users/{user}`: what is left out stays as it is. */
export const changeUserSchema = z
  .strictObject({
    disabled: z.boolean().describe('True: each request is refused from now on.').exactOptional(),
    residency: residency.exactOptional(),
    limits: limitChangesSchema
      .refine((changes) => Object.keys(changes).length > 0, 'must name a limit')
      .meta({ minProperties: 1 })
      .describe('Exceptions from the limits of the tables; `default`: as the tables say again.')
      .exactOptional(),
  })
  .meta({ minProperties: 1 });

export const newUserKeySchema = z.strictObject({
  user_id: z.uuid(),
  ...newServiceKeyRecordSchema.omit({ current: true }).shape,
});
export type NewUserKey = z.output<typeof newUserKeySchema>;

const spendRecordSchema = z.strictObject({
  user_id: z.uuid(),
  email: z.string().nullable().describe('Null: the user was deleted.'),
  requests: shownCount,
  errors: shownCount,
  input_tokens: shownCount,
  output_tokens: shownCount,
  cost_usd: usd,
});
export type SpendRecord = z.output<typeof spendRecordSchema>;

/** `GET /admin/spend`. */
export const spendQuerySchema = z.object({
  from: queryInstant,
  to: queryInstant.meta({ description: 'Exclusive; now by default.' }).optional(),
});

export const spendReportSchema = z.strictObject({
  from: shownInstant.describe('The bounds, widened to whole UTC hours.'),
  to: shownInstant,
  users: z.array(spendRecordSchema),
  more: z.boolean().describe('There are more users, who spent no more than any of these.'),
});
export type SpendReport = z.output<typeof spendReportSchema>;
