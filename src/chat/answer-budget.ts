import { SharedRoom, slotOf } from '../core/shared-room.ts';

/** Of the heap's limit, for large answers: read, parsed and written again, one costs up to eight times its bytes. */
const answersHeapShare = 1 / 16;
/**
 * For small ones of users' own servers, which can have us hold a thousand of them, and for as long as an attempt may
 * take. Vendors' small ones are not counted: nobody else may make them fail, and they are there for a moment.
 */
const smallAnswersHeapShare = 1 / 8;
/** For streams that are put together to be stored. */
const keptAnswersHeapShare = 1 / 16;
/** Answers, and what streams keep, up to this size have room of their own: none fails for the sake of large ones. */
export const smallAnswerBytes = 64 * 1024;
/** So have those that hold no more values, which nearly all do: log-probabilities and long lists have more. */
const smallAnswerValues = 1024;
/** Most are no larger; they are not counted, and a thousand of them are 4 MiB. */
const uncountedBytes = 4 * 1024;
/**
 * In bytes of an answer, each of which may cost eight: parsed, a value takes up to 80 of the heap. So 64 KiB of nothing
 * but `{}` are one and a half megabytes for as long as the answer is under way, and a hundred such end the process.
 */
const valueBytes = 10;

/** Whether an answer is one of the large ones. */
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

  /** The same; how much it holds afterwards. */
  held(userId: string, held: number, wanted: number): number {
    return wanted === held || this.move(userId, held, wanted) ? wanted : held;
  }
}

/** The budgets of the process, by what is counted. */
export interface AnswerBudgets {
  readonly large: AnswerBudget;
  readonly small: AnswerBudget;
  /** What goes beyond it is sent all the same, and not stored. */
  readonly kept: AnswerBudget;
}

/** `seed`: for `slotOf`. */
export function answerBudgets(heapBytes: number, seed: number): AnswerBudgets {
  return {
    large: new AnswerBudget(heapBytes * answersHeapShare, seed),
    small: new AnswerBudget(heapBytes * smallAnswersHeapShare, seed),
    kept: new AnswerBudget(heapBytes * keptAnswersHeapShare, seed),
  };
}

/** What one answer, or one stream, holds of the budgets. */
export class AnswerHold {
  readonly #budgets: AnswerBudgets;
  readonly #userId: string;
  readonly #countsSmall: boolean;
  #large = 0;
  #small = 0;

  /** `countsSmall`: somebody who may wish us harm says how long a small one is held. */
  constructor(budgets: AnswerBudgets, userId: string, countsSmall: boolean) {
    this.#budgets = budgets;
    this.#userId = userId;
    this.#countsSmall = countsSmall;
  }

  get isCounted(): boolean {
    return this.#large > 0 || this.#small > 0;
  }

  /** Counts it with so many bytes from now on. False when there is no room for them; it holds no more than before. */
  count(bytes: number): boolean {
    return this.countAs(bytes > smallAnswerBytes, bytes);
  }

  /** The same as one of the large, or of the small ones. */
  countAs(isLarge: boolean, bytes: number): boolean {
    const isSmall = this.#countsSmall && !isLarge && bytes > uncountedBytes;
    const [large, small] = [isLarge ? bytes : 0, isSmall ? bytes : 0];
    this.#large = this.#budgets.large.held(this.#userId, this.#large, large);
    if (this.#large !== large) return false;
    this.#small = this.#budgets.small.held(this.#userId, this.#small, small);
    return this.#small === small;
  }

  /** The same for an answer that is about to be parsed. */
  countParsed(bytes: number, values: number): boolean {
    return values > smallAnswerValues
      ? this.count(Math.max(bytes, valueBytes * values, smallAnswerBytes + 1))
      : this.count(bytes);
  }
}
