import { ByteBuffer } from '../core/byte-buffer.ts';
import { ownCopy } from '../core/own-copy.ts';
import type { StreamTranslator } from '../providers/provider.ts';
import type { AnswerBudgets } from './answer-budget.ts';
import { AnswerHold, smallAnswerBytes } from './answer-budget.ts';
import type { TransportFailure } from './ports.ts';

/** The failure of an answer that does not fit into the budget of all. */
export const noRoomForAnswer: TransportFailure = {
  kind: 'no-room',
  message: 'The gateway has no room for an answer of this size at the moment.',
};

export function answerTooLarge(what: 'answer' | 'stream', limitBytes: number): TransportFailure {
  return { kind: 'too-large', message: `The ${what} exceeds ${limitBytes} bytes.` };
}

/**
 * What a vendor has sent and nobody has taken yet. One piece stays as it came; more are gathered in one buffer. It
 * counts against the budgets of all, by the memory that it takes, and with it what a stream's translator keeps.
 */
export class HeldBytes {
  readonly #hold: AnswerHold;
  /** It says when the next piece comes: what is small would keep a slab that all share. */
  readonly #ofUserServer: boolean;
  #only: Buffer | null = null;
  #gathered: ByteBuffer | null = null;
  #kept = 0;
  #pending = 0;

  /** `ofUserServer`: it comes from a server that a user chose. */
  constructor(budgets: AnswerBudgets, userId: string, ofUserServer: boolean) {
    this.#hold = new AnswerHold(budgets, userId, ofUserServer);
    this.#ofUserServer = ofUserServer;
  }

  get length(): number {
    return this.#gathered?.length ?? this.#only?.length ?? 0;
  }

  add(piece: Buffer): void {
    if (this.#gathered !== null) {
      this.#gathered.append(piece);
    } else if (this.#only === null) {
      this.#only = this.#ofUserServer ? ownCopy(piece) : piece;
    } else {
      this.#gathered = new ByteBuffer();
      this.#gathered.append(this.#only);
      this.#gathered.append(piece);
      this.#only = null;
    }
  }

  /** All of it; nothing is held, or counted, afterwards. What is not counted any more stays so. */
  take(): Buffer {
    const bytes = this.#gathered?.release() ?? this.#only ?? Buffer.alloc(0);
    this.#gathered = null;
    this.#only = null;
    if (this.#hold.isCounted) this.fits();
    return bytes;
  }

  /** What a translator keeps now. */
  translated({ keptBytes, decoder }: Pick<StreamTranslator, 'keptBytes' | 'decoder'>): void {
    this.#kept = keptBytes;
    this.#pending = decoder.heldBytes;
  }

  /** Counts what is held now. False when there is no room for it. */
  fits(): boolean {
    const { length } = this;
    // What is gathered takes up to twice what it is: an answer is large by its bytes, not by how they came in pieces.
    if (length + this.#kept + this.#pending / 2 > smallAnswerBytes)
      return this.#hold.countAs(true, length + this.#kept + this.#pending);
    return this.#hold.countAs(false, (this.#gathered?.capacity ?? length) + this.#kept + this.#pending);
  }

  /** Nothing counts any more. */
  uncount(): void {
    this.#hold.count(0);
  }
}
