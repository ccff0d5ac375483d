import { FairQueue } from '../core/fair-queue.ts';
import { tooManyQueries } from './user-turns.ts';

interface Waiter {
  readonly begin: () => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Work of which the whole process does little at once, whoever asks for it, since each piece takes much memory: the
 * users who wait have their turns one after the other. Whoever calls bounds how many wait for one user.
 */
export class FairTurns {
  readonly #mostUnderWay: number;
  readonly #maxWaitMs: number;
  readonly #waiting = new FairQueue<Waiter>();
  #underWay = 0;

  constructor(mostUnderWay: number, maxWaitMs: number) {
    this.#mostUnderWay = mostUnderWay;
    this.#maxWaitMs = maxWaitMs;
  }

  /** Does `work` in a turn of the user's. Throws RateLimitError (`too_many_queries`) when none comes in time. */
  async run<Result>(userId: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#underWay < this.#mostUnderWay) this.#underWay += 1;
    else await this.#wait(userId);
    try {
      return await work();
    } finally {
      this.#end();
    }
  }

  #wait(userId: string): Promise<void> {
    return new Promise((begin, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.remove(userId, waiter);
        reject(tooManyQueries());
      }, this.#maxWaitMs);
      const waiter: Waiter = { begin, timer };
      this.#waiting.add(userId, waiter);
    });
  }

  #end(): void {
    const next = this.#waiting.take();
    if (next === null) {
      this.#underWay -= 1;
      return;
    }
    clearTimeout(next.timer);
    next.begin(); // takes over the turn, so the count stays
  }
}
