import { FairQueue } from './core/fair-queue.ts';

export interface FairTurnsOptions {
  readonly mostUnderWay: number;
  /** How long work may wait for its turn. */
  readonly maxWaitMs: number;
  /** What is thrown when it does not come in time. */
  readonly late: () => Error;
}

/**
 * Work of which the whole process does little at once, whoever asks for it: those who wait have their turns one after
 * the other, by owner.
 */
export class FairTurns {
  readonly #options: FairTurnsOptions;
  readonly #waiting = new FairQueue<() => void>();
  #underWay = 0;

  constructor(options: FairTurnsOptions) {
    this.#options = options;
  }

  /** Does `work` in a turn of `owner`'s. */
  async run<Result>(owner: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#underWay < this.#options.mostUnderWay) this.#underWay += 1;
    else await this.#turnOf(owner);
    try {
      return await work();
    } finally {
      const next = this.#waiting.take();
      if (next === null) this.#underWay -= 1;
      else next();
    }
  }

  /** Resolves with the place of one that has ended. */
  #turnOf(owner: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.remove(owner, begin);
        reject(this.#options.late());
      }, this.#options.maxWaitMs);
      this.#waiting.add(owner, begin);
    });
  }
}
