import type { WireUsage } from '../../core/answer/chat-completion.ts';
import type { Usage } from '../../core/answer/usage.ts';
import { isTokenCount, tokenCount } from '../../core/answer/usage.ts';
import { isKeptNumber } from '../../core/json/exact-json.ts';
import type { JsonRecord, Untrusted } from '../json-value.ts';
import { isRecord } from '../json-value.ts';
import type { CompletionUsage } from './wire.ts';

export interface ReadUsage {
  readonly usage: Usage;
  readonly wire: WireUsage;
}

interface Part {
  readonly count: number;
  /** Something is stated that cannot be: no count, or a part larger than its whole. */
  readonly doubtful: boolean;
}

const cachedNames = ['cached_tokens'] as const;
const writtenNames = ['cache_write_tokens', 'cache_creation_tokens'] as const;
const reasoningNames = ['reasoning_tokens'] as const;

/** Nothing is stated. */
const noPart: Part = { count: 0, doubtful: false };

/** The first field that is stated, at most `limit`: a part cannot be larger than its whole. */
function partOf(details: unknown, names: readonly string[], limit: number): Part {
  if (!isRecord(details)) return noPart;
  let doubtful = false;
  for (const name of names) {
    const given = details[name] ?? null;
    if (given === null) continue;
    if (isTokenCount(given)) return { count: Math.min(given, limit), doubtful: doubtful || given > limit };
    doubtful = true;
  }
  return doubtful ? { count: 0, doubtful } : noPart;
}

/** One that no double holds is a number too. */
const isNumber = (value: unknown): boolean => typeof value === 'number' || isKeptNumber(value);

const isSaneDetail = (value: unknown): boolean => isTokenCount(value) || !isNumber(value);

function areSane(details: JsonRecord): boolean {
  for (const name in details) if (!isSaneDetail(details[name])) return false;
  return true;
}

/** A breakdown without the numbers nobody can have meant; the same object when all are sane. */
function saneDetails(details: JsonRecord): JsonRecord {
  if (areSane(details)) return details;
  return Object.fromEntries(Object.entries(details).filter(([, value]) => isSaneDetail(value)));
}

/** True when nothing of it has to be put into form: it goes on as it came. */
function isSane(given: JsonRecord, input: number, output: number): boolean {
  for (const name in given) {
    const value = given[name];
    if (isRecord(value)) {
      if (!areSane(value)) return false;
    } else if (isNumber(value) && name.endsWith('_tokens') && !isTokenCount(value)) return false;
  }
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = given;
  return prompt === input && completion === output && total === input + output;
}

/** JSON characters of a usage object that is kept with an open stream: the longest seen have some 400. */
const maxKeptLength = 4096;

/** The usage as a stream keeps it until its last chunk: beyond a bound, no more than its counts. */
export function keptUsage(wire: WireUsage): WireUsage {
  if (JSON.stringify(wire).length <= maxKeptLength) return wire;
  const { prompt_tokens, completion_tokens, total_tokens } = wire;
  return { prompt_tokens, completion_tokens, total_tokens };
}

function wireOf(given: JsonRecord, input: number, output: number): WireUsage {
  if (isSane(given, input, output)) return given as unknown as WireUsage;
  const wire: JsonRecord = { ...given };
  for (const [name, value] of Object.entries(given)) {
    if (isRecord(value)) wire[name] = saneDetails(value);
    else if (isNumber(value) && name.endsWith('_tokens') && !isTokenCount(value)) delete wire[name];
  }
  // Never the vendor's own: where it is no sum, row and price would contradict it.
  return { ...wire, prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

/**
 * Reads a usage object of OpenAI shape: cached and cache-write tokens are parts of `prompt_tokens`, reasoning
 * is a part of `completion_tokens` (OpenAI API reference, CompletionUsage). Counts that are missing or that
 * nobody can have meant read as 0, and then the basis is `partial`; null when not one count can be believed.
 */
export function readUsage(value: unknown): ReadUsage | null {
  if (!isRecord(value)) return null;
  const given: Untrusted<CompletionUsage> = value;
  const prompt = tokenCount(given.prompt_tokens);
  const completion = tokenCount(given.completion_tokens);
  if (prompt === null && completion === null) return null;
  const inputTokens = prompt ?? 0;
  const outputTokens = completion ?? 0;
  const details = given.prompt_tokens_details;
  const detailed = partOf(details, cachedNames, inputTokens);
  // Together states it beside the whole.
  const cached = detailed === noPart ? partOf(given, cachedNames, inputTokens) : detailed;
  const written = partOf(details, writtenNames, inputTokens - cached.count);
  const whole = prompt !== null && completion !== null && !cached.doubtful && !written.doubtful;
  return {
    usage: {
      basis: whole ? 'complete' : 'partial',
      inputTokens,
      outputTokens,
      cachedInputTokens: cached.count,
      cacheWriteTokens: written.count,
      cacheWriteLongTokens: 0,
      // Some servers count reasoning apart; it has no price of its own.
      reasoningTokens: partOf(given.completion_tokens_details, reasoningNames, outputTokens).count,
    },
    wire: wireOf(value, inputTokens, outputTokens),
  };
}
