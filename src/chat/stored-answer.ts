import { z } from 'zod';
import type { ChatCompletion } from '../core/answer/chat-completion.ts';
import { saysSomething } from '../core/answer/chat-completion.ts';
import type { Usage } from '../core/answer/usage.ts';
import { usageBases } from '../core/answer/usage.ts';
import type { Candidate } from '../core/candidate.ts';
import { providerNames } from '../core/provider-name.ts';
import type { ChatCall } from '../core/request/chat-call.ts';

/** What is known of a cached answer. */
const storedFactsSchema = z.object({
  provider: z.enum(providerNames),
  model: z.string(),
  usage: z.object({
    basis: z.enum(usageBases),
    inputTokens: z.number(),
    outputTokens: z.number(),
    cachedInputTokens: z.number(),
    cacheWriteTokens: z.number(),
    cacheWriteLongTokens: z.number(),
    reasoningTokens: z.number(),
  }),
  /** What the answer cost when it was made, in micro-dollars. */
  costMicroUsd: z.string().regex(/^\d{1,18}$/),
  /** Of the request that made it; null in entries of before it was kept. */
  requestId: z.string().nullable().default(null),
  /** Trace and span of the request that made it, for span links. */
  traceId: z.string().nullable(),
  spanId: z.string().nullable(),
});

/** A cached answer: complete, whatever way it was delivered. */
export interface StoredAnswer extends Readonly<z.infer<typeof storedFactsSchema>> {
  /** `chat.completion` without a gateway block, as JSON text. */
  readonly completionJson: string;
}

/** Ends the facts; JSON has none unescaped. */
const lineFeed = 0x0a;

/** Exactly the choices 0 to `n` - 1, in any order. */
function holdsChoices({ choices }: ChatCompletion, n: number): boolean {
  if (choices.length !== n) return false;
  const seen = new Set(choices.map(({ index }) => index));
  return seen.size === n && [...seen].every((index) => index >= 0 && index < n);
}

/**
 * What may be cached of a whole answer; null when it is empty, has other choices than the client asked for,
 * or is larger than the tables allow.
 */
export function storedAnswer(
  call: ChatCall,
  { provider, model }: Candidate,
  completion: ChatCompletion,
  completionJson: string,
  usage: Usage,
  cost: bigint,
): StoredAnswer | null {
  if (Buffer.byteLength(completionJson) > call.tables.document.limits.cache_entry_bytes) return null;
  if (!saysSomething(completion) || !holdsChoices(completion, call.request.n ?? 1)) return null;
  const { traceId = null, spanId = null } = call.trace ?? {};
  const { requestId } = call;
  return { completionJson, provider, model, usage, costMicroUsd: String(cost), requestId, traceId, spanId };
}

/** A line of JSON with the facts, then the answer as it is: a hit parses the one and passes on the other. */
export function encodeStoredAnswer({ completionJson, ...facts }: StoredAnswer): Buffer {
  return Buffer.from(`${JSON.stringify(facts)}\n${completionJson}`);
}

/** Null for anything that this version did not write. */
export function decodeStoredAnswer(bytes: Buffer): StoredAnswer | null {
  const end = bytes.indexOf(lineFeed);
  if (end === -1) return null;
  try {
    const facts = storedFactsSchema.safeParse(JSON.parse(bytes.toString('utf8', 0, end)));
    return facts.success ? { ...facts.data, completionJson: bytes.toString('utf8', end + 1) } : null;
  } catch {
    return null;
  }
}
