import type { ChatCall } from '../core/request/chat-call.ts';
import type { StreamTranslator } from '../providers/provider.ts';
import type { AnswerBudgets } from './answer-budget.ts';
import { answerTooLarge, HeldBytes, noRoomForAnswer } from './held-bytes.ts';
import type { StreamConsumer, StreamEnd } from './open-stream.ts';
import type { TransportFailure } from './ports.ts';

/**
 * A body that is translated as it comes. Until somebody takes what comes of it, it is held, and so is the end; within
 * its limits: before the first token one event, then a whole stream.
 */
export class StreamBody {
  /** The vendor's, that have come. */
  bytes = 0;
  readonly #translator: StreamTranslator;
  readonly #limits: ChatCall['tables']['document']['limits'];
  readonly #held: HeldBytes;
  #consumer: StreamConsumer | null = null;
  #end: StreamEnd | null = null;

  constructor(
    translator: StreamTranslator,
    { userId, tables }: ChatCall,
    answers: AnswerBudgets,
    ofUserServer: boolean,
  ) {
    this.#translator = translator;
    this.#limits = tables.document.limits;
    this.#held = new HeldBytes(answers, userId, ofUserServer);
  }

  /** One read of the vendor's bytes. */
  take(chunk: Buffer): void {
    this.bytes += chunk.length;
    const out = this.#translator.push(chunk);
    if (out !== null) this.#deliver(out);
    this.#held.translated(this.#translator);
  }

  /** The vendor has ended its body. */
  finish(): void {
    const out = this.#translator.end();
    if (out !== null) this.#deliver(out);
  }

  /** Which limit it is beyond; null: none. */
  excess(): TransportFailure | null {
    const limitBytes = this.#translator.tokenSeen ? this.#limits.stream_bytes : this.#limits.event_bytes;
    // What is held can be longer than what came: it was put into form.
    if (Math.max(this.bytes, this.#held.length) > limitBytes) return answerTooLarge('stream', limitBytes);
    return this.#held.fits() ? null : noRoomForAnswer;
  }

  /** Hands over what is held, and the end where it has come. Throws what the consumer of an open stream throws. */
  attach(consumer: StreamConsumer): void {
    this.#consumer = consumer;
    try {
      if (this.#held.length > 0) consumer.onBytes(this.#held.take());
    } catch (cause) {
      if (this.#end === null) throw cause;
      this.#end = { kind: 'broken', cause };
    }
    if (this.#end !== null) consumer.onEnd(this.#end);
  }

  /** Nothing comes after it; once. */
  end(end: StreamEnd): void {
    if (this.#consumer === null) this.#end = end;
    else this.#consumer.onEnd(end);
  }

  /** Gives its part of the budget back. */
  release(): void {
    this.#held.uncount();
  }

  #deliver(out: Buffer): void {
    if (this.#consumer === null) this.#held.add(out);
    else this.#consumer.onBytes(out);
  }
}
