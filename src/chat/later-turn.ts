/** Of text, or in bytes: beyond it a step of a request ends its turn. 20 MB take a tenth of a second each time. */
export const longestOfOneTurn = 1024 * 1024;

/**
 * Steps of large requests, each in a turn of the event loop of its own: between two of them all is served that has come
 * meanwhile, so nobody waits for more than one. One queue for the whole process: two would have a step in one turn.
 */
export class LaterTurns {
  readonly #waiting: (() => void)[] = [];

  /** Resolves in a turn of its own. */
  turn(): Promise<void> {
    return new Promise((resolve) => this.#add(resolve));
  }

  /**
   * Goes through `steps`, each part between two `yield` in a turn of its own; the result has one too. Rejects with what
   * a part throws: thrown from a callback of the event loop it would be nobody's, and end the process.
   */
  run<Result>(steps: Iterator<unknown, Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const goOn = (): void => {
        try {
          const step = steps.next();
          this.#add(step.done === true ? () => resolve(step.value) : goOn);
        } catch (bug) {
          reject(bug);
        }
      };
      this.#add(goOn);
    });
  }

  /** No step may throw. */
  #add(step: () => void): void {
    this.#waiting.push(step);
    // The first callback still belongs to the present turn.
    if (this.#waiting.length === 1) setImmediate(() => setImmediate(this.#next));
  }

  readonly #next = (): void => {
    this.#waiting[0]?.();
    this.#waiting.shift();
    if (this.#waiting.length > 0) setImmediate(this.#next);
  };
}
