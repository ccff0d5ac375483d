import { SharedRoom, slotOf } from '../core/shared-room.ts';

/** Of the heap's limit, for large answers: read, parsed and written again, one costs up to eight times its bytes. */
export const answersHeapShare = 1 / 16;
/** Answers, and events of streams, up to this size are not counted: they must not fail for the sake of large ones. */
export const smallAnswerBytes = 64 * 1024;
/** Nor are those that hold no more values, which nearly all do: log-probabilities and long lists have more. */
const smallAnswerValues = 1024;
/**
 * In bytes of an answer, each of which may cost eight: parsed, a value takes up to 80 of the heap. So 64 KiB of nothing
 * but `{}` are one and a half megabytes for as long as the answer is under way, and a hundred such end the process.
 */
const valueBytes = 10;

/** Whether an answer is one of those that are counted. */
export const isLargeAnswer = (bytes: number, values: number): boolean =>
  bytes > smallAnswerBytes || values > smallAnswerValues;

/**
 * Bytes of vendors' answers that the process has in memory before they are read: a server that sends all but the
 * last byte would have us keep them for as long as an attempt may take. Nobody may hold more than is left for all
 * others, so that one user's servers leave room for the next user's.
 */
export class AnswerBudget {
  readonly #room: SharedRoom;
  readonly #seed: number;

  /** `seed`: for `slotOf`. */
  constructor(limitBytes: number, seed: number) {
    this.#room = new SharedRoom(limitBytes);
    this.#seed = seed;
  }

  get heldBytes(): number {
    return this.#room.heldBytes;
  }

  /** The limit's part that is taken; more than 1 when a single answer is larger than the limit. */
  get fullness(): number {
    return this.#room.heldBytes / this.#room.limitBytes;
  }

  /**
   * Makes an answer that holds `held` bytes hold `wanted`. False, and nothing changes, when there is no room. The
   * only large answer may be as large as the tables allow, whatever the size of the heap.
   */
  move(userId: string, held: number, wanted: number): boolean {
    const slot = slotOf(userId, this.#seed);
    const more = wanted - held;
    const isOnly = this.#room.heldBytes <= held;
    if (more > 0 && !isOnly && !this.#room.hasRoom(slot, more)) return false;
    this.#room.move(slot, more);
    return true;
  }
}

/** What one answer holds of the budget; small ones, up to `uncountedBytes`, hold nothing. */
export class AnswerHold {
  readonly #budget: AnswerBudget;
  readonly #userId: string;
  readonly #uncountedBytes: number;
  #counted = 0;

  constructor(budget: AnswerBudget, userId: string, uncountedBytes = smallAnswerBytes) {
    this.#budget = budget;
    this.#userId = userId;
    this.#uncountedBytes = uncountedBytes;
  }

  get isCounted(): boolean {
    return this.#counted > 0;
  }

  /** Counts it with so many bytes from now on. False, and nothing changes, when there is no room for them. */
  count(bytes: number): boolean {
    const wanted = bytes > this.#uncountedBytes ? bytes : 0;
    if (wanted === this.#counted) return true;
    if (!this.#budget.move(this.#userId, this.#counted, wanted)) return false;
    this.#counted = wanted;
    return true;
  }

  /** The same for an answer that is about to be parsed. */
  countParsed(bytes: number, values: number): boolean {
    return values > smallAnswerValues
      ? this.count(Math.max(bytes, valueBytes * values, smallAnswerBytes + 1))
      : this.count(bytes);
  }
}
