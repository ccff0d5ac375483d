import type { UpstreamHeaders } from '../core/outcome.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { AnswerBudget } from './answer-budget.ts';
import { maxErrorBodyBytes } from './exchange-limits.ts';
import { answerTooLarge, HeldBytes, noRoomForAnswer } from './held-bytes.ts';
import type { ExchangeEnd } from './open-stream.ts';

/** A body that is read to its end before anything is made of it: a JSON answer, or what stands behind an error. */
export class WholeBody {
  readonly #status: number;
  readonly #headers: UpstreamHeaders;
  readonly #limitBytes: number;
  readonly #held: HeldBytes;
  #bytes = 0;

  constructor(status: number, headers: UpstreamHeaders, { userId, tables }: ChatCall, answers: AnswerBudget) {
    const { limits } = tables.document;
    this.#status = status;
    this.#headers = headers;
    this.#limitBytes = status === 200 ? limits.answer_bytes : maxErrorBodyBytes;
    this.#held = new HeldBytes(answers, userId, limits.event_bytes);
  }

  /** The end of an exchange whose body is longer than may be read, an error's cut there; null: on with it. */
  take(chunk: Buffer): ExchangeEnd | null {
    this.#bytes += chunk.length;
    const excess = this.#bytes - this.#limitBytes;
    if (excess > 0 && this.#status === 200) {
      return { kind: 'transport', failure: answerTooLarge('answer', this.#limitBytes) };
    }
    this.#held.add(excess > 0 ? chunk.subarray(0, chunk.length - excess) : chunk);
    if (excess > 0) return this.#reply(true);
    return this.#held.fits() ? null : { kind: 'transport', failure: noRoomForAnswer };
  }

  /** The body is whole. */
  end(): ExchangeEnd {
    return this.#reply(false);
  }

  /** Gives its part of the budget back. */
  release(): void {
    this.#held.uncount();
  }

  #reply(cut: boolean): ExchangeEnd {
    const body = this.#held.take();
    return { kind: 'replied', status: this.#status, headers: this.#headers, body, cut };
  }
}
