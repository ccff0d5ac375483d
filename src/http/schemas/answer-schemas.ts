import { z } from 'zod';
import { keyVerdicts } from '../../core/account/key-verdict.ts';
import type { GatewayMetadata } from '../../core/answer/gateway-metadata.ts';
import type { ErrorBody } from '../../core/error-body.ts';
import { allErrorCodes } from '../../core/error-codes.ts';
import { errorTypes } from '../../core/errors.ts';
import { providerNames } from '../../core/provider-name.ts';
import { residencies } from '../../core/request/residency.ts';
import { maxReasonLength } from '../../core/secret/redact.ts';
import { answeringProviders, shownResidencies } from '../../core/settled-request.ts';
import { shownCount, shownInstant, usd } from '../../core/shown-values.ts';
import { statsGroups } from '../../core/stats-group.ts';
import { attemptFields } from './answer-fields.ts';

/**
 * What the API answers. The description shows these schemas, and the compiler holds what is sent to their types;
 * nothing is checked while serving. `npm run test:schema` compares what comes out.
 */

export const registeredUserSchema = z.strictObject({
  user_id: z.uuid(),
  email: z.string(),
  api_key: z.string(),
  shown_once: z.literal(true),
});
export type RegisteredUserRecord = z.output<typeof registeredUserSchema>;

export const providerKeyRecordSchema = z.strictObject({
  id: z.uuid(),
  provider: z.enum(providerNames),
  residency: z.enum(residencies),
  declared_region: z.string().nullable(),
  base_url: z.string().nullable(),
  label: z.string().nullable(),
  created_at: shownInstant,
});
export type ProviderKeyRecord = z.output<typeof providerKeyRecordSchema>;

/** Neither the key nor its hash. */
const serviceKeyRecord = {
  id: z.uuid(),
  label: z.string().nullable(),
  created_at: shownInstant,
  expires_at: shownInstant.nullable().describe('Afterwards it is refused as an unknown key.'),
  last_used_at: shownInstant.nullable().describe('Start of the UTC hour in which it was last presented.'),
  current: z.boolean().describe('The key of this request.'),
};
export const serviceKeyRecordSchema = z.strictObject(serviceKeyRecord);
export type ServiceKeyRecord = z.output<typeof serviceKeyRecordSchema>;
export const newServiceKeyRecordSchema = z.strictObject({
  ...serviceKeyRecord,
  api_key: z.string(),
  shown_once: z.literal(true),
});

/** What the key's own server makes of it. */
export const keyCheckSchema = z.strictObject({
  id: z.uuid(),
  provider: z.enum(providerNames),
  /** Where the server stands that was asked. */
  residency: z.enum(residencies),
  verdict: z.enum(keyVerdicts),
  reason: z.string().max(maxReasonLength),
  /** The server's; null when no answer came. */
  status: z.int().nullable(),
  latency_ms: shownCount,
  /** Of the caller's latest requests: how often in a row the key was rejected. */
  rejected_in_a_row: shownCount,
});

const gatewayBlockSchema: z.ZodType<GatewayMetadata> = z.strictObject({
  provider: z.enum(answeringProviders),
  model: z.string(),
  mode: z.string(),
  cache_hit: z.boolean(),
  latency_ms: shownCount,
  cost_usd: usd,
  residency_actual: z.enum(shownResidencies),
  request_id: z.string(),
});

/** Vendors may add fields to the answer, its choices and its usage. */
export const chatCompletionSchema = z.looseObject({
  id: z.string(),
  object: z.literal('chat.completion'),
  created: z.int(),
  model: z.string(),
  choices: z.array(
    z.looseObject({
      index: shownCount,
      message: z.looseObject({ role: z.literal('assistant'), content: z.string().nullable() }),
      finish_reason: z.string(),
    }),
  ),
  usage: z.looseObject({
    prompt_tokens: shownCount,
    completion_tokens: shownCount,
    total_tokens: shownCount,
  }),
  gateway: gatewayBlockSchema,
});

const percentile = z.number().min(0).nullable();

const sums = {
  requests: shownCount,
  successes: shownCount,
  errors: shownCount,
  cache_hits: shownCount,
  input_tokens: shownCount,
  output_tokens: shownCount,
  total_tokens: shownCount,
  cost_usd: usd,
  saved_usd: usd,
  latency_ms: z.strictObject({ p50: percentile, p95: percentile, p99: percentile }),
};

const groupName = z.string().optional();

export const statsSchema = z.strictObject({
  since: shownInstant.nullable(),
  until: shownInstant.nullable(),
  group_by: z.array(z.enum(statsGroups)),
  totals: z.strictObject(sums),
  groups: z.array(
    z.strictObject({ provider: groupName, model: groupName, mode: groupName, day: groupName, ...sums }),
  ),
});

export type Stats = z.output<typeof statsSchema>;

/** Ours, or the vendor's own where an override or a stream fails. */
const errorCodeSchema = z.union([z.enum(allErrorCodes), z.string()]);

/** Every refusal and failure (SPEC 7); an override's is the vendor's own. */
export const errorBodySchema: z.ZodType<ErrorBody> = z.object({
  error: z.object({
    message: z.string(),
    type: z.enum(errorTypes),
    param: z.string().nullable(),
    code: errorCodeSchema.nullable(),
    request_id: z.string(),
    attempts: z
      .array(
        z.object({
          ...attemptFields,
        }),
      )
      .exactOptional(),
  }),
});

export const modelEntrySchema = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
});

export const modelListSchema = z.object({
  object: z.literal('list'),
  data: z.array(modelEntrySchema),
  override_targets: z.array(modelEntrySchema.extend({ object: z.literal('override_target') })),
});
