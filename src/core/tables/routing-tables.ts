import { z } from 'zod';
import { defaultLimitFields } from '../limits/user-limits.ts';
import { parseInstant } from '../parse-instant.ts';
import { vendorNames } from '../provider-name.ts';
import { modelFactsSchema } from './model-facts.ts';
import { maxModelLength } from './model-name.ts';
import { priceSchema } from './price.ts';

const seconds = (fallback: number, max: number) => z.number().positive().max(max).default(fallback);
const count = (fallback: number, max: number) => z.int().positive().max(max).default(fallback);

/** Read by our own parser when tables are compiled, so that what passes here has an instant there. */
const instant = z.iso
  .datetime({ offset: true, abort: true })
  .refine(
    (text) => parseInstant(text) !== null,
    'must be a date and time with at most nine digits of a second',
  );

const candidateSchema = z.strictObject({
  provider: z.enum(vendorNames),
  model: z.string().min(1).max(maxModelLength),
});

/** At most this many candidates per tier: each one may cost a whole attempt timeout. */
const maxCandidates = 16;
const tierSchema = z.array(candidateSchema).min(1).max(maxCandidates);

/** No limit of any tables lets more bytes of an answer through. */
export const largestStreamBytes = 4 * 1024 * 1024 * 1024;

const timeoutsSchema = z.strictObject({
  /** To the whole answer (JSON) or the first token (stream), per attempt; X-Gateway-Timeout overrides it. */
  attempt_seconds: seconds(120, 300),
  /** Longest silence of a stream after its first token. */
  stream_idle_seconds: seconds(60, 300),
  /** The whole request, all attempts and the stream included; the chart's grace period covers it. */
  request_seconds: seconds(300, 3600),
});

const limitsSchema = z.strictObject({
  messages: count(10_000, 100_000),
  /** Content parts, and fields beside role and content, of all messages together: each is looked at singly. */
  message_parts: count(20_000, 200_000),
  body_depth: count(64, 1000),
  stop_sequences: count(64, 1000),
  /** A whole upstream answer; larger ones are failures. */
  answer_bytes: count(16 * 1024 * 1024, 256 * 1024 * 1024),
  /**
   * One streamed event, which could not be told from an endless line if it were longer; and all that comes before the
   * first token, comments included.
   */
  event_bytes: count(1024 * 1024, 16 * 1024 * 1024),
  /** A whole streamed answer. */
  stream_bytes: count(256 * 1024 * 1024, largestStreamBytes),
  /** A cached answer; larger ones are not stored. */
  cache_entry_bytes: count(1024 * 1024, 16 * 1024 * 1024),
  /** All cached answers of one user in Redis, until they expire; beyond it none is stored. */
  cache_user_bytes: count(64 * 1024 * 1024, 64 * 1024 * 1024 * 1024),
  /** The rest is of each user, over all replicas; none by default. */
  ...defaultLimitFields,
});

const cooldownSchema = z.strictObject({
  failures: count(5, 1000),
  first_seconds: seconds(5, 3600),
  /** Short, so that a vendor that is well again is soon used again; a probe costs one request an attempt. */
  longest_seconds: seconds(15, 3600),
  /** Distinct users that must see connect failures or 5xx before everybody's order changes. */
  users: count(3, 1000),
  /** Off by default: SPEC 4.5 says candidates are tried in order. */
  after_429: z.boolean().default(false),
  /** Of a 429 that says when to come back, no more than this is believed: some name the next month. */
  longest_retry_after_seconds: seconds(60, 3600),
});

const indiaRegions = [
  'in',
  'india',
  'ap-south-1',
  'ap-south-2',
  'asia-south1',
  'asia-south2',
  'centralindia',
  'southindia',
  'westindia',
];

/**
 * The one hot-reloaded document: tiers, prices, capabilities, limits. It is data: the shipped defaults
 * live in charts/model-gateway/files/tables.yaml, and nothing of it is repeated in code but the defaults of limits,
 * timeouts, cooldown, regions and sunset, so that a short document is a valid one (a test compares them).
 */
export const routingTablesSchema = z.strictObject({
  tiers: z.strictObject({ cheap: tierSchema, balanced: tierSchema, premium: tierSchema }),
  prices: z.array(priceSchema).max(10_000).default([]),
  models: z.array(modelFactsSchema).max(10_000).default([]),
  chat: z
    .strictObject({
      /** Body fields beyond the known ones that are let through unvalidated. */
      passthrough_fields: z.array(z.string().min(1).max(64)).max(64).default([]),
      /** Off by default: SPEC 4.5 names four roles. Agents' SDKs send a fifth. */
      developer_role: z.boolean().default(false),
    })
    .prefault({}),
  residency: z
    .strictObject({
      india_regions: z.array(z.string().min(1).max(64)).max(256).default(indiaRegions),
      /** What holds for every request, as if it had asked for it. */
      policy: z.enum(['none', 'india']).default('none'),
    })
    .prefault({}),
  /** The surface from before the rename (SPEC 9.2): absent means there is none. */
  legacy: z
    .strictObject({
      name: z.string().regex(/^[a-z][a-z0-9-]{0,31}$/),
      sunset: instant.default('2026-07-23T00:00:00Z'),
    })
    .optional(),
  timeouts: timeoutsSchema.prefault({}),
  limits: limitsSchema.prefault({}),
  cooldown: cooldownSchema.prefault({}),
});

export type RoutingTablesDocument = z.infer<typeof routingTablesSchema>;
export type TierCandidate = z.infer<typeof candidateSchema>;
