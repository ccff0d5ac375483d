import { ByteBuffer } from '../core/byte-buffer.ts';
import type { AnswerBudget } from './answer-budget.ts';
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

/** Of the heap, uncounted: eight choices, or forty calls. Nearly all streams keep less, and a thousand of them 8 MB. */
const smallKeptBytes = 8 * 1024;
/** A byte of an answer may cost eight of the heap, for a moment; these are kept for as long as the stream. */
const keptShare = 1 / 4;

/**
 * What a vendor has sent and nobody has taken yet. One piece stays as it came; more are gathered in one buffer. Large
 * answers count against the budget of all, and so does what waits in a stream's translator for its event to end, and
 * what that keeps of choices and calls until the stream does.
 */
export class HeldBytes {
  readonly #hold: AnswerHold;
  /** Of what a translator keeps. */
  readonly #keptHold: AnswerHold;
  readonly #maxPending: number;
  #only: Buffer | null = null;
  #gathered: ByteBuffer | null = null;
  #pending = 0;
  #kept = 0;

  /** `maxPending`: as many bytes a translator keeps back at most. */
  constructor(budget: AnswerBudget, userId: string, maxPending: number) {
    this.#hold = new AnswerHold(budget, userId);
    this.#keptHold = new AnswerHold(budget, userId, smallKeptBytes * keptShare);
    this.#maxPending = maxPending;
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

  /** A translator took so many bytes, said something or nothing, and keeps so many of the heap. */
  translated(bytes: number, isOutput: boolean, keptBytes: number): void {
    this.#pending = isOutput ? 0 : Math.min(this.#pending + bytes, this.#maxPending);
    this.#kept = keptBytes;
  }

  /** Counts what is held now. False when there is no room for it. */
  fits(): boolean {
    const hasRoom = this.#hold.count(Math.max(this.length, this.#pending));
    return hasRoom && this.#keptHold.count(this.#kept * keptShare);
  }

  /** Nothing counts any more. */
  uncount(): void {
    this.#hold.count(0);
    this.#keptHold.count(0);
  }
}
