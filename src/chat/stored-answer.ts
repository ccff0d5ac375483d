import { answerBounds } from '../core/answer/answer-limits.ts';
import type { ChatCompletion } from '../core/answer/chat-completion.ts';
import { saysSomething } from '../core/answer/chat-completion.ts';
import type { JsonAnswer } from '../core/answer/json-answer.ts';
import type { Usage, UsageBasis } from '../core/answer/usage.ts';
import { isTokenCount, usageBases } from '../core/answer/usage.ts';
import type { Candidate } from '../core/candidate.ts';
import { tallyJson } from '../core/json/json-tally.ts';
import type { ProviderName } from '../core/provider-name.ts';
import { providerNames } from '../core/provider-name.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import { choicesAsked } from '../core/request/chat-call.ts';

/** What is known of a cached answer. */
interface StoredFacts {
  readonly provider: ProviderName;
  readonly model: string;
  readonly usage: Usage;
  /** In its JSON, as `tallyJson` counts them: what it takes to parse it, which a hit cannot wait to find out. */
  readonly values: number;
  /** What the answer cost when it was made, in micro-dollars. */
  readonly costMicroUsd: number;
  /** Of the request that made it. */
  readonly requestId: string;
  /** Trace and span of the request that made it, for span links. */
  readonly traceId: string | null;
  readonly spanId: string | null;
}

/** A cached answer: complete, whatever way it was delivered. */
export interface StoredAnswer extends StoredFacts {
  /** `chat.completion` without a gateway block. */
  readonly completion: JsonAnswer;
}

function valuesIn(json: string): number {
  const tally = tallyJson(Buffer.from(json), answerBounds);
  return typeof tally === 'string' ? answerBounds.values : tally.values;
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
 * What may be cached of a whole answer; null when it is empty, has other choices than the client asked for, is larger
 * than the tables allow, or cost what no number tells exactly.
 */
export function storedAnswer(
  call: ChatCall,
  { provider, model }: Candidate,
  completion: ChatCompletion,
  { json, bytes }: JsonAnswer,
  usage: Usage,
  cost: bigint,
): StoredAnswer | null {
  if (bytes > call.tables.document.limits.cache_entry_bytes) return null;
  if (!saysSomething(completion) || !holdsChoices(completion, choicesAsked(call))) return null;
  const costMicroUsd = Number(cost);
  if (!Number.isSafeInteger(costMicroUsd)) return null;
  const { traceId = null, spanId = null } = call.trace ?? {};
  const { requestId } = call;
  const made = { provider, model, usage, values: valuesIn(json), costMicroUsd };
  return { completion: { json, bytes }, ...made, requestId, traceId, spanId };
}

const countNames = [
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'cacheWriteLongTokens',
  'reasoningTokens',
] as const satisfies readonly (keyof Usage)[];

/**
 * A line of JSON with the facts, then the answer as it is: a hit parses the one and passes on the other. The facts are
 * a list, which is read in half the time of an object.
 */
export function encodeStoredAnswer({ completion, usage, ...facts }: StoredAnswer): Buffer {
  const { provider, model, values, costMicroUsd, requestId, traceId, spanId } = facts;
  const counts = countNames.map((name) => usage[name]);
  const list = [provider, model, values, costMicroUsd, requestId, traceId, spanId, usage.basis, ...counts];
  return Buffer.from(`${JSON.stringify(list)}\n${completion.json}`);
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown): value is string => typeof value === 'string';
const isTextOrNull = (value: unknown): value is string | null => value === null || isText(value);
const isProvider = (value: unknown): value is ProviderName => providerNames.includes(value as ProviderName);
const isBasis = (value: unknown): value is UsageBasis => usageBases.includes(value as UsageBasis);

function usageOf(basis: unknown, counts: readonly unknown[]): Usage | null {
  if (!isBasis(basis) || counts.length !== countNames.length || !counts.every(isTokenCount)) return null;
  const [inputTokens, outputTokens, cachedInputTokens] = counts as [number, number, number];
  const [cacheWriteTokens, cacheWriteLongTokens, reasoningTokens] = counts.slice(3) as [
    number,
    number,
    number,
  ];
  return {
    ...{ basis, inputTokens, outputTokens, cachedInputTokens },
    ...{ cacheWriteTokens, cacheWriteLongTokens, reasoningTokens },
  };
}

/** Null for a list that was not encoded here. */
function factsOf(list: unknown): StoredFacts | null {
  if (!Array.isArray(list)) return null;
  const [provider, model, values, cost, requestId, traceId, spanId, basis, ...counts] = list as unknown[];
  const usage = usageOf(basis, counts);
  if (usage === null || !isProvider(provider) || !isText(model) || !isText(requestId)) return null;
  if (!isTextOrNull(traceId) || !isTextOrNull(spanId)) return null;
  if (!isCount(values) || !isCount(cost)) return null;
  return { provider, model, usage, values, costMicroUsd: cost, requestId, traceId, spanId };
}

/** Its text is made when it is asked for: where there is no room for a hit, a millisecond is spent on nobody. */
function textBehind(bytes: Buffer, from: number): JsonAnswer {
  let text: string | null = null;
  return {
    get json() {
      text ??= bytes.toString('utf8', from);
      return text;
    },
    bytes: bytes.length - from,
  };
}

/** Null for anything that this version did not write. */
export function decodeStoredAnswer(bytes: Buffer): StoredAnswer | null {
  const end = bytes.indexOf(lineFeed);
  if (end === -1) return null;
  try {
    const facts = factsOf(JSON.parse(bytes.toString('utf8', 0, end)));
    if (facts === null) return null;
    return { ...facts, completion: textBehind(bytes, end + 1) };
  } catch {
    return null;
  }
}
