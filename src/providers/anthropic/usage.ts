import type { WireUsage } from '../../core/answer/chat-completion.ts';
import type { Usage } from '../../core/answer/usage.ts';
import { maxTokenCount, noUsage, tokenCount } from '../../core/answer/usage.ts';
import type { Untrusted } from '../json-value.ts';
import { isRecord } from '../json-value.ts';
import type { CacheCreation, MessageUsage } from './wire.ts';

/**
 * Anthropic's counts are disjoint: `input_tokens` leaves out what was read from and written to the prompt
 * cache. They are also cumulative: a later event repeats or corrects an earlier one, field by field, so each
 * field keeps its last valid value and nothing is ever added up (Claude docs: Streaming messages). The
 * `output_tokens` that a stream begins with are a placeholder and are never taken.
 */
export class UsageReader {
  #input: number | null = null;
  #output: number | null = null;
  #cacheRead: number | null = null;
  #cacheWrite: number | null = null;
  #cacheWriteShort: number | null = null;
  #cacheWriteLong: number | null = null;
  #thinking: number | null = null;
  #doubtful = false;

  /** Usage of a whole answer, or of a `message_delta`. */
  take(value: unknown): void {
    if (!isRecord(value)) return;
    const given: Untrusted<MessageUsage> = value;
    this.takeStart(given);
    this.#output = this.#stated(given.output_tokens) ?? this.#output;
    const { output_tokens_details: stated } = given;
    const details: Untrusted<MessageUsage['output_tokens_details']> = isRecord(stated) ? stated : {};
    this.#thinking = tokenCount(details.thinking_tokens) ?? this.#thinking;
  }

  /** The count, or null; a number or text that is none casts doubt on all of them. */
  #stated(given: unknown): number | null {
    const count = tokenCount(given);
    if (count === null && given !== undefined && given !== null) this.#doubtful = true;
    return count;
  }

  /** Usage of a `message_start`: the input side. */
  takeStart(value: unknown): void {
    if (!isRecord(value)) return;
    const given: Untrusted<MessageUsage> = value;
    this.#input = this.#stated(given.input_tokens) ?? this.#input;
    this.#cacheRead = this.#stated(given.cache_read_input_tokens) ?? this.#cacheRead;
    this.#takeCacheWrites(given);
  }

  #takeCacheWrites(given: Untrusted<MessageUsage>): void {
    const byAge: Untrusted<CacheCreation> = isRecord(given.cache_creation) ? given.cache_creation : {};
    const short = this.#stated(byAge.ephemeral_5m_input_tokens);
    const long = this.#stated(byAge.ephemeral_1h_input_tokens);
    this.#cacheWriteShort = short ?? this.#cacheWriteShort;
    this.#cacheWriteLong = long ?? this.#cacheWriteLong;
    const total = this.#stated(given.cache_creation_input_tokens);
    if (total !== null) this.#cacheWrite = total;
    else if (short !== null || long !== null)
      this.#cacheWrite = (this.#cacheWriteShort ?? 0) + (this.#cacheWriteLong ?? 0);
  }

  /** False while a stream has given its placeholder only. */
  get outputStated(): boolean {
    return this.#output !== null;
  }

  /**
   * All counts so far, in the classes that are priced; `ended`: more are not to come. Complete are then only
   * those of which none is missing or was stated as what nobody can have meant.
   */
  usage(ended: boolean): Usage {
    if (this.#input === null && this.#output === null) return noUsage;
    const statedInput = (this.#input ?? 0) + (this.#cacheRead ?? 0) + (this.#cacheWrite ?? 0);
    const inputTokens = Math.min(statedInput, maxTokenCount);
    // Parts are no more than the whole has left for them, as they are priced.
    const cachedInputTokens = Math.min(this.#cacheRead ?? 0, inputTokens);
    const written = Math.min(this.#cacheWrite ?? 0, inputTokens - cachedInputTokens);
    const cacheWriteLongTokens = Math.min(this.#cacheWriteLong ?? 0, written);
    const outputTokens = this.#output ?? 0;
    const sane =
      !this.#doubtful &&
      statedInput <= maxTokenCount &&
      (this.#cacheWriteLong ?? 0) <= (this.#cacheWrite ?? 0);
    const whole = ended && sane && this.#input !== null && this.#output !== null;
    return {
      basis: whole ? 'complete' : 'partial',
      inputTokens,
      outputTokens,
      cachedInputTokens,
      cacheWriteTokens: written - cacheWriteLongTokens,
      cacheWriteLongTokens,
      reasoningTokens: Math.min(this.#thinking ?? 0, outputTokens),
    };
  }

  /** The usage object of OpenAI shape: a breakdown is there when its count was, 0 included. */
  get wire(): WireUsage | null {
    const usage = this.usage(true);
    if (usage.basis === 'none') return null;
    const promptDetails: { cached_tokens?: number; cache_write_tokens?: number } = {};
    if (this.#cacheRead !== null) promptDetails.cached_tokens = usage.cachedInputTokens;
    if (this.#cacheWrite !== null) {
      promptDetails.cache_write_tokens = usage.cacheWriteTokens + usage.cacheWriteLongTokens;
    }
    return {
      prompt_tokens: usage.inputTokens,
      completion_tokens: usage.outputTokens,
      total_tokens: usage.inputTokens + usage.outputTokens,
      ...(Object.keys(promptDetails).length > 0 && { prompt_tokens_details: promptDetails }),
      ...(this.#thinking !== null && {
        completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      }),
    };
  }
}
