import type { ChatCompletion, WireUsage } from '../core/answer/chat-completion.ts';
import { CompletionAccumulator } from '../core/answer/completion-accumulator.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { AnswerBudget } from './answer-budget.ts';

/** What its vendor said of the whole answer at its end. */
interface VendorTotals {
  readonly usage: WireUsage | null;
  readonly extras: Readonly<Record<string, unknown>>;
}

/**
 * A streamed answer that is put together on its way to the client, to be stored. What it keeps counts against a
 * budget of its own, since a vendor's stream may stay open for long; without room it is given up, and the client gets
 * its answer all the same.
 */
export class KeptAnswer {
  readonly #budget: AnswerBudget;
  readonly #userId: string;
  #counted = 0;
  #chunks: CompletionAccumulator | null;

  constructor({ userId, tables }: ChatCall, budget: AnswerBudget) {
    this.#budget = budget;
    this.#userId = userId;
    this.#chunks = new CompletionAccumulator(tables.document.limits.cache_entry_bytes);
  }

  /** Takes SSE bytes as they went to the client, in any split. */
  push(bytes: Buffer): void {
    if (this.#chunks === null) return;
    this.#chunks.push(bytes);
    if (!this.#count(this.#chunks.heldBytes)) this.release();
  }

  /** The answer as a whole, and nothing is kept any more. Null: it cannot be stored. */
  complete({ usage, extras }: VendorTotals): ChatCompletion | null {
    const completion = this.#chunks?.complete(usage, extras) ?? null;
    this.release();
    return completion;
  }

  /** To be called however the stream ends. */
  release(): void {
    this.#chunks = null;
    this.#count(0);
  }

  #count(bytes: number): boolean {
    this.#counted = this.#budget.held(this.#userId, this.#counted, bytes);
    return this.#counted === bytes;
  }
}
