import type { WireUsage } from '../../core/answer/chat-completion.ts';
import type { Usage } from '../../core/answer/usage.ts';
import { isTokenCount, noUsage, tokenCount } from '../../core/answer/usage.ts';
import { isKeptNumber } from '../../core/json/kept-number.ts';
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

/** Where a count stands; null: in an object that nothing is read of. */
type Holder = 'usage' | 'prompt_tokens_details' | 'completion_tokens_details' | null;

const holderOf = (name: string): Holder =>
  name === 'prompt_tokens_details' || name === 'completion_tokens_details' ? name : null;

const isOneOf = (names: readonly string[], name: string): boolean => names.includes(name);

/** What price and row take the part to be that is stated there by this name; null for one that they do not know. */
function takenPart(holder: Holder, name: string, usage: Usage): number | null {
  if (holder === null) return null;
  if (holder === 'completion_tokens_details')
    return isOneOf(reasoningNames, name) ? usage.reasoningTokens : null;
  if (isOneOf(cachedNames, name)) return usage.cachedInputTokens;
  return holder !== 'usage' && isOneOf(writtenNames, name) ? usage.cacheWriteTokens : null;
}

/** What the client is shown of a value; undefined for a number nobody can have meant. */
function shownValue(holder: Holder, name: string, value: unknown, usage: Usage): unknown {
  const taken = value === null ? null : takenPart(holder, name, usage);
  if (taken !== null) return isTokenCount(value) ? taken : undefined;
  if (isTokenCount(value) || !isNumber(value)) return value;
  return holder === 'usage' && !name.endsWith('_tokens') ? value : undefined;
}

/** What the client is shown of the usage, or of a breakdown in it; the same object when all of it may be. */
function shownOf(given: JsonRecord, holder: Holder, usage: Usage): JsonRecord {
  let shown = given;
  for (const name in given) {
    const value = given[name];
    const isBreakdown = holder === 'usage' && isRecord(value) && !isOneOf(cachedNames, name);
    const proper = isBreakdown
      ? shownOf(value, holderOf(name), usage)
      : shownValue(holder, name, value, usage);
    if (proper === value) continue;
    if (shown === given) shown = { ...given };
    if (proper === undefined) delete shown[name];
    else shown[name] = proper;
  }
  return shown;
}

/**
 * What a stream has stated of what it used up: the latest word, unless it leaves out or sets to nothing what was whole.
 */
export class StatedUsage {
  wire: WireUsage | null = null;
  #usage: Usage = noUsage;
  #isFinal = false;

  /** `answerEnded`: whether it was said with the last finish reason or behind it. */
  take(read: ReadUsage | null, answerEnded: boolean): void {
    if (read === null || (this.#usage.basis === 'complete' && isHollow(read.usage, this.#usage))) return;
    this.#usage = read.usage;
    this.#isFinal = answerEnded;
    this.wire = keptUsage(read.wire);
  }

  /** Counts that run along with the text are no more than partial until the answer has ended. */
  usage(answerEnded: boolean): Usage {
    const isFinal = this.#isFinal && answerEnded;
    return isFinal || this.#usage.basis === 'none' ? this.#usage : { ...this.#usage, basis: 'partial' };
  }
}

/** Whether `later` says nothing of input or of output of which `before` has said something. */
function isHollow(later: Usage, before: Usage): boolean {
  const losesInput = later.inputTokens === 0 && before.inputTokens > 0;
  return losesInput || (later.outputTokens === 0 && before.outputTokens > 0);
}

/** JSON characters of a usage object that is kept with an open stream: the longest seen have some 400. */
const maxKeptLength = 4096;

/** The usage as a stream keeps it until its last chunk: beyond a bound, no more than its counts. */
function keptUsage(wire: WireUsage): WireUsage {
  if (JSON.stringify(wire).length <= maxKeptLength) return wire;
  const { prompt_tokens, completion_tokens, total_tokens } = wire;
  return { prompt_tokens, completion_tokens, total_tokens };
}

/** As price and row have it; the same object when it came so, and goes on as it is. */
function wireOf(given: JsonRecord, usage: Usage): WireUsage {
  const { inputTokens: input, outputTokens: output } = usage;
  const shown = shownOf(given, 'usage', usage);
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = shown;
  const isSum = prompt === input && completion === output && total === input + output;
  if (isSum) return shown as unknown as WireUsage;
  // Never the vendor's own: where it is no sum, row and price would contradict it.
  return { ...shown, prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
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
  const usage: Usage = {
    basis: whole ? 'complete' : 'partial',
    inputTokens,
    outputTokens,
    cachedInputTokens: cached.count,
    cacheWriteTokens: written.count,
    cacheWriteLongTokens: 0,
    // Some servers count reasoning apart; it has no price of its own.
    reasoningTokens: partOf(given.completion_tokens_details, reasoningNames, outputTokens).count,
  };
  return { usage, wire: wireOf(value, usage) };
}
