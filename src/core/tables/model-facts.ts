import { z } from 'zod';
import type { ProviderName } from '../provider-name.ts';
import { providerNames } from '../provider-name.ts';
import { maxModelLength } from './model-name.ts';

const factFields = {
  /** Sees images: as data URI, and (with `image_urls`) by address. */
  vision: z.boolean(),
  image_urls: z.boolean(),
  tools: z.boolean(),
  /** Sent as `reasoning_effort` with tools where the client names none; null: nothing is sent. */
  tools_effort: z
    .string()
    .regex(/^[a-z]{1,16}$/, 'must be a word such as none')
    .nullable(),
  /** `tool_choice` required or a named function. */
  forced_tool: z.boolean(),
  json_object: z.boolean(),
  json_schema: z.boolean(),
  /** More than one choice per request. */
  multiple_choices: z.boolean(),
  /** Knows the role `developer`; false: such messages are sent as `system`. */
  developer_role: z.boolean(),
  /** Takes a conversation that ends with an assistant message to be continued. */
  prefill: z.boolean(),
  /** Whole context window in tokens; null: unknown, not checked. */
  context_tokens: z.int().positive().nullable(),
  /** Takes temperature, top_p and the penalties; false: they are dropped, and requests for logprobs go elsewhere. */
  sampling: z.boolean(),
  temperature_max: z.number().min(0).max(2),
  /** False: when both are given, temperature is kept and top_p dropped. */
  temperature_with_top_p: z.boolean(),
  /** Takes stop sequences. */
  stop: z.boolean(),
  max_tokens_field: z.enum(['max_tokens', 'max_completion_tokens']),
  /** Sent when the client names no limit; null: nothing is sent. */
  default_max_tokens: z.int().positive().nullable(),
  /** Ask for usage on streams by `stream_options.include_usage`. */
  stream_usage: z.boolean(),
  /** Version in the vendor's path; read for vendors that serve several side by side. */
  api_version: z.enum(['v1', 'v2']),
} as const;

/**
 * One row: facts for every model of `provider` whose name begins with `match` (empty: all of them).
 * Rows are merged from the shortest match to the longest, so a family row sets defaults and a model row
 * corrects them. A new model needs a row at most, never a release.
 */
export const modelFactsSchema = z.strictObject({
  provider: z.enum(providerNames),
  match: z.string().max(maxModelLength),
  ...z.object(factFields).partial().shape,
});

export type ModelFactsRow = z.infer<typeof modelFactsSchema>;
export type ModelFacts = Readonly<z.infer<z.ZodObject<typeof factFields>>>;

/** What is believed of a model no row speaks about: that it can do everything the wire can say. */
export const permissiveFacts: ModelFacts = Object.freeze({
  vision: true,
  image_urls: true,
  tools: true,
  tools_effort: null,
  forced_tool: true,
  json_object: true,
  json_schema: true,
  multiple_choices: true,
  // The one fact that is not presumed: every model knows `system`.
  developer_role: false,
  prefill: true,
  context_tokens: null,
  sampling: true,
  temperature_max: 2,
  temperature_with_top_p: true,
  stop: true,
  max_tokens_field: 'max_tokens',
  default_max_tokens: null,
  stream_usage: true,
  api_version: 'v2',
});

/** OpenAI names what was tuned of a model `ft:`, the model, whose it is, and an id. */
const tuned = /^ft:/;

/** Merges all rows that match, shortest first; what was tuned of a model can do what that can. */
export function resolveFacts(
  rows: readonly ModelFactsRow[],
  provider: ProviderName,
  model: string,
): ModelFacts {
  const base = model.replace(tuned, '');
  const matching = rows
    .filter((row) => row.provider === provider && (model.startsWith(row.match) || base.startsWith(row.match)))
    .sort((a, b) => a.match.length - b.match.length);
  const merged: Record<string, unknown> = { ...permissiveFacts };
  for (const { provider: _provider, match: _match, ...facts } of matching) Object.assign(merged, facts);
  return Object.freeze(merged) as unknown as ModelFacts;
}
