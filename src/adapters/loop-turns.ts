/**
 * Counts turns of the event loop, so that "already there when we looked" can be told from "came later":
 * whatever the kernel held at a moment is read in the poll phase that follows it, before the second mark.
 * Runs only for two turns after each mark.
 */
class LoopTurns {
  #turn = 0;
  #runUntil = 0;
  #scheduled = false;

  /** The present turn; the counter goes on from here for two more. */
  mark(): number {
    this.#runUntil = this.#turn + 2;
    this.#schedule();
    return this.#turn;
  }

  /** True while nothing but one look at the sockets lies between `marked` and now. */
  isWithinFirstLook(marked: number): boolean {
    return this.#turn - marked < 2;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#turn += 1;
      if (this.#turn < this.#runUntil) this.#schedule();
    });
  }
}

/** There is one event loop, so there is one counter. */
export const loopTurns = new LoopTurns();
