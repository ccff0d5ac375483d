import { z } from 'zod';

const roles = ['system', 'user', 'assistant', 'tool'] as const;

const contentPartSchema = z.looseObject({ type: z.string() });
export type ContentPart = z.infer<typeof contentPartSchema>;

/** SPEC 4.5: one message. Unknown fields pass through; `content` must at least be of a known kind. */
const chatMessageSchema = z.looseObject({
  role: z.enum(roles),
  content: z.union([z.string(), z.array(contentPartSchema), z.null()]).optional(),
});

/** The largest int64 that a double can hold: 2^63 itself is one too many. */
const largestSeed = 2 ** 63 - 1024;
/** An int64, of which JSON's numbers keep 53 bits: rounding must not lift it out of its range. */
const seedSchema = z
  .number()
  .refine((seed) => Number.isInteger(seed) && Math.abs(seed) <= 2 ** 63, 'Invalid input: expected int64')
  .overwrite((seed) => Math.min(largestSeed, Math.max(-largestSeed, seed)))
  .meta({ type: 'integer', format: 'int64' });

const stopSchema = z.union([z.string(), z.array(z.string())]);

interface StreamOptions {
  readonly include_usage?: boolean | undefined;
  readonly [other: string]: unknown;
}

/** Its own option may be null as the optional fields of the body may; others are the vendor's. */
const streamOptionsSchema = z
  .looseObject({ include_usage: z.boolean().nullish() })
  .transform((options): StreamOptions => {
    const { include_usage: wish, ...others } = options;
    return wish === null ? others : { ...others, include_usage: wish };
  });

/** SPEC 4.5 body fields plus the additional known fields of docs/decisions/0003. */
export const chatRequestSchema = z.strictObject({
  model: z.string().min(1).max(256),
  messages: z.array(chatMessageSchema).min(1),
  temperature: z.number().min(0).max(2).optional(),
  max_tokens: z.int().min(1).optional(),
  max_completion_tokens: z.int().min(1).optional(),
  top_p: z.number().min(0).max(1).optional(),
  presence_penalty: z.number().min(-2).max(2).optional(),
  frequency_penalty: z.number().min(-2).max(2).optional(),
  seed: seedSchema.optional(),
  stop: stopSchema.optional(),
  n: z.int().min(1).max(10).optional(),
  stream: z.boolean().optional(),
  user: z.string().max(1024).optional(),
  stream_options: streamOptionsSchema.optional(),
  tools: z.array(z.looseObject({})).optional(),
  tool_choice: z.union([z.string(), z.looseObject({})]).optional(),
  parallel_tool_calls: z.boolean().optional(),
  response_format: z.looseObject({}).optional(),
});

const anyMessageSchema = chatMessageSchema.extend({ role: z.enum([...roles, 'developer']) });

/** The same where the operator has switched the `developer` role on (`chat.developer_role`). */
export const chatRequestWithDeveloperSchema = chatRequestSchema.extend({
  messages: z.array(anyMessageSchema).min(1),
});

export type ChatMessage = z.infer<typeof anyMessageSchema>;

/** A validated body. Operator-allowed extra fields (`chat.passthrough_fields`) ride along by name. */
export type ChatRequest = Readonly<z.infer<typeof chatRequestWithDeveloperSchema>> & {
  readonly [passthrough: string]: unknown;
};
