import { smallAnswerBytes } from '../chat/answer-budget.ts';

/**
 * Of the heap, for large whole answers that their clients have not taken yet. Each is there as text and as
 * bytes, outside the heap, where a container has two fifths of its memory for everything; and what the kernel takes of
 * one, some megabytes, is not counted any more.
 */
export const unreadHeapShare = 1 / 16;

/** A response, as far as it matters here. */
export interface UnreadResponse {
  once(event: 'close', listener: () => void): unknown;
  destroy(): unknown;
}

interface UnreadAnswer {
  readonly userId: string;
  readonly response: UnreadResponse;
  readonly bytes: number;
}

/**
 * Whole answers on their way to clients. Each may take half a minute without progress, and they were paid for: none is
 * refused. Where all together are too many, the oldest one of the user with the most of them is let go.
 */
export class UnreadAnswers {
  readonly #limitBytes: number;
  /** In the order they were written. */
  readonly #answers = new Set<UnreadAnswer>();
  #heldBytes = 0;
  /** Told of each one that makes room for others. */
  onLetGo: () => void = () => undefined;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Counts an answer until its response closes. */
  add(userId: string, response: UnreadResponse, bytes: number): void {
    if (bytes <= smallAnswerBytes) return;
    const answer: UnreadAnswer = { userId, response, bytes };
    this.#answers.add(answer);
    this.#heldBytes += bytes;
    response.once('close', () => this.#remove(answer));
    while (this.#heldBytes > this.#limitBytes) {
      const oldest = this.#oldestOfLargest(answer);
      if (oldest === null) return;
      this.#remove(oldest);
      oldest.response.destroy();
      this.onLetGo();
    }
  }

  #remove(answer: UnreadAnswer): void {
    if (this.#answers.delete(answer)) this.#heldBytes -= answer.bytes;
  }

  /** None that has only just been written: it may be read at once. */
  #oldestOfLargest(latest: UnreadAnswer): UnreadAnswer | null {
    const byUser = new Map<string, { bytes: number; oldest: UnreadAnswer | null }>();
    for (const answer of this.#answers) {
      const own = byUser.get(answer.userId) ?? { bytes: 0, oldest: null };
      if (answer !== latest) own.oldest ??= answer;
      own.bytes += answer.bytes;
      byUser.set(answer.userId, own);
    }
    let largest: { bytes: number; oldest: UnreadAnswer | null } = { bytes: 0, oldest: null };
    for (const own of byUser.values()) {
      if (own.oldest !== null && own.bytes > largest.bytes) largest = own;
    }
    return largest.oldest;
  }
}
