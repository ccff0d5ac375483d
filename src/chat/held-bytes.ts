import { ByteBuffer } from '../core/byte-buffer.ts';
import type { AnswerBudgets } from './answer-budget.ts';
import { AnswerHold } from './answer-budget.ts';
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
  #only: Buffer | null = null;
  #gathered: ByteBuffer | null = null;
  #kept = 0;

  /** `ofUserServer`: it comes from a server that a user chose. */
  constructor(budgets: AnswerBudgets, userId: string, ofUserServer: boolean) {
    this.#hold = new AnswerHold(budgets, userId, ofUserServer);
  }

  get length(): number {
    return this.#gathered?.length ?? this.#only?.length ?? 0;
  }

  add(piece: Buffer): void {
    if (this.#gathered !== null) {
      this.#gathered.append(piece);
    } else if (this.#only === null) {
      this.#only = piece;
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

  /** So many bytes of memory a translator keeps now. */
  translated(keptBytes: number): void {
    this.#kept = keptBytes;
  }

  /** Counts what is held now. False when there is no room for it. */
  fits(): boolean {
    return this.#hold.count((this.#gathered?.capacity ?? this.length) + this.#kept);
  }

  /** Nothing counts any more. */
  uncount(): void {
    this.#hold.count(0);
  }
}
