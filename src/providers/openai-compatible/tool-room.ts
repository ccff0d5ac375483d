import { maxToolCalls } from '../../core/answer/answer-limits.ts';
import { characterBytes } from '../answer-limits.ts';

/** Characters of ids and names, and of arguments that wait for a name which comes late. */
const maxHeldLength = 64 * 1024;

/** What a call takes of the heap, its places in the maps of its choice included. */
const callBytes = 200;

/** What the tool calls of one stream may have us keep, whichever choices they are spread over. */
export class ToolRoom {
  #calls = 0;
  #heldLength = 0;

  /** Of heap, roughly. */
  get keptBytes(): number {
    return this.#calls * callBytes + this.#heldLength * characterBytes;
  }

  /** False when there are too many. */
  addCall(): boolean {
    this.#calls += 1;
    return this.#calls <= maxToolCalls;
  }

  /** Keeps `length` characters more, or less; false when that is too much. */
  hold(length: number): boolean {
    this.#heldLength += length;
    return this.#heldLength <= maxHeldLength;
  }
}
