import { z } from 'zod';
import { userLimitsSchema } from '../core/limits/user-limits.ts';
import { count, instant, usd } from './answer-fields.ts';

/** What operators get, on the admin port and from commands. */

export const userRecordSchema = z.strictObject({
  user_id: z.uuid(),
  email: z.string(),
  created_at: instant,
  disabled_at: instant.nullable(),
  residency: z.literal('india').nullable().describe('What the operator bound the user to.'),
  limits: userLimitsSchema
    .nullable()
    .describe('Exceptions from the limits of the tables; null: there are none.'),
  service_keys: count.describe('That are live.'),
  provider_keys: count,
});
export type UserRecord = z.output<typeof userRecordSchema>;

export const spendRecordSchema = z.strictObject({
  user_id: z.uuid(),
  email: z.string().nullable().describe('Null: the user was deleted.'),
  requests: count,
  errors: count,
  input_tokens: count,
  output_tokens: count,
  cost_usd: usd,
});
export type SpendRecord = z.output<typeof spendRecordSchema>;
