/** Of text, or in bytes: beyond it a step of a request ends its turn. 20 MB take a tenth of a second each time. */
export const longestOfOneTurn = 1024 * 1024;

/**
 * Steps of large requests, each in a turn of the event loop of its own: between two of them all is served that has come
 * meanwhile, so nobody waits for more than one. One queue for the whole process: two would have a step in one turn.
 */
export class LaterTurns {
  readonly #waiting: (() => void)[] = [];

  add(step: () => void): void {
    this.#waiting.push(step);
    // The first callback still belongs to the present turn.
    if (this.#waiting.length === 1) setImmediate(() => setImmediate(this.#next));
  }

  /** Resolves in a turn of its own. */
  turn(): Promise<void> {
    return new Promise((resolve) => this.add(resolve));
  }

  /** Goes on with `steps`, each part between two `yield` in a turn of its own; `done` has one too. */
  run<Result>(steps: Iterator<unknown, Result>, done: (result: Result) => void): void {
    this.add(() => {
      const step = steps.next();
      if (step.done === true) this.add(() => done(step.value));
      else this.run(steps, done);
    });
  }

  readonly #next = (): void => {
    const step = this.#waiting[0];
    try {
      step?.();
    } finally {
      this.#waiting.shift();
      if (this.#waiting.length > 0) setImmediate(this.#next);
    }
  };
}
