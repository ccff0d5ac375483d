import type { UpstreamHeaders } from '../core/outcome.ts';
import { promisesAnswer } from '../core/outcome.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { AnswerBudgets } from './answer-budget.ts';
import { maxErrorBodyBytes } from './exchange-limits.ts';
import { answerTooLarge, HeldBytes, noRoomForAnswer } from './held-bytes.ts';
import type { ExchangeEnd } from './open-stream.ts';
import type { UpstreamHead } from './ports.ts';

const noHeaders: UpstreamHeaders = Object.freeze({});
/** Of an answer nobody reads its fields, of an error its provider does: a head of 16 KiB is not kept for nothing. */
const anyAnswer: Pick<UpstreamHead, 'status' | 'headers'> = Object.freeze({
  status: 200,
  headers: noHeaders,
});

/** A body that is read to its end before anything is made of it: a JSON answer, or what stands behind an error. */
export class WholeBody {
  readonly #head: Pick<UpstreamHead, 'status' | 'headers'>;
  readonly #limitBytes: number;
  readonly #held: HeldBytes;
  #bytes = 0;

  constructor(
    head: UpstreamHead,
    { userId, tables }: ChatCall,
    answers: AnswerBudgets,
    ofUserServer: boolean,
  ) {
    const { limits } = tables.document;
    const isAnswer = promisesAnswer(head.status);
    this.#head = isAnswer ? anyAnswer : head;
    this.#limitBytes = isAnswer ? limits.answer_bytes : maxErrorBodyBytes;
    this.#held = new HeldBytes(answers, userId, ofUserServer);
  }

  /** The end of an exchange whose body is longer than may be read, an error's cut there; null: on with it. */
  take(chunk: Buffer): ExchangeEnd | null {
    this.#bytes += chunk.length;
    const excess = this.#bytes - this.#limitBytes;
    if (excess > 0 && this.#head === anyAnswer) {
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
    const { status, headers } = this.#head;
    return { kind: 'replied', status, headers, body, cut };
  }
}
