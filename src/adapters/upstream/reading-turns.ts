import type { Placed } from '../../core/placed-list.ts';
import { PlacedList } from '../../core/placed-list.ts';

/**
 * Reading what vendors have sent may take one turn of the event loop so long. A read of 64 KiB is up to 20 ms of work,
 * where it is seven thousand events that say nothing, and a turn reads all that has come, megabytes on each of hundreds
 * of connections.
 */
export const longestReadingMs = 50;

/** A connection that waits for an answer. */
export interface TurnReader extends Placed {
  /** In which turn it was read last, as `ReadingTurns` counts them. */
  readTurn: number;
  /** What comes is left where it is, whoever wants it, until `letGo`. */
  hold(): void;
  letGo(): void;
}

/**
 * Shares the event loop between the connections to vendors, and between them and all else. Once a turn has read for too
 * long, nobody is read any more in it; those that were read wait until all others had theirs, so that none keeps
 * another from being read, however much it sends.
 */
export class ReadingTurns {
  readonly #readers = new PlacedList<TurnReader>();
  /** They have had their turn. */
  readonly #waiting = new Set<TurnReader>();
  #turn = 0;
  #beganMs: number | null = null;
  #isOver = false;
  #ends = false;

  /** It is to be read from now on. */
  enter(reader: TurnReader): void {
    this.#readers.add(reader);
    if (this.#isOver) reader.hold();
  }

  /** Nobody waits for what it says. */
  leave(reader: TurnReader): void {
    this.#readers.remove(reader);
    if (this.#waiting.size > 0) this.#waiting.delete(reader);
    reader.letGo();
  }

  /** It was read between these two, in monotonic milliseconds. */
  wasRead(reader: TurnReader, fromMs: number, toMs: number): void {
    this.#beganMs ??= fromMs;
    this.#endLater();
    reader.readTurn = this.#turn;
    if (this.#isOver || toMs - this.#beganMs < longestReadingMs) return;
    this.#isOver = true;
    for (const one of this.#readers.entries) one.hold();
  }

  #endLater(): void {
    if (this.#ends) return;
    this.#ends = true;
    setImmediate(this.#end);
  }

  /** Behind all that was read in this turn. */
  readonly #end = (): void => {
    const [wasOver, turn] = [this.#isOver, this.#turn];
    this.#turn += 1;
    this.#beganMs = null;
    this.#isOver = false;
    this.#ends = false;
    if (wasOver) this.#letOthersGo(turn);
    else if (this.#waiting.size > 0) this.#letAllGo();
  };

  #letOthersGo(turn: number): void {
    for (const reader of this.#readers.entries) {
      if (reader.readTurn === turn) this.#waiting.add(reader);
      else if (!this.#waiting.has(reader)) reader.letGo();
    }
    // Perhaps nobody else has anything to be read.
    this.#endLater();
  }

  #letAllGo(): void {
    for (const reader of this.#waiting) reader.letGo();
    this.#waiting.clear();
  }
}
