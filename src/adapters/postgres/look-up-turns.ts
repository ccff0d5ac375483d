import { FairQueue } from '../../core/fair-queue.ts';
import { StoreAway } from '../../core/store-away.ts';

/** With a look-up of a Postgres that answers, the whole call ends within 2 s. */
const patienceMs = 900;

/**
 * Look-ups of keys that nobody here knows. Strangers can send any number of them: 1,500 connections that each sent one
 * after the other let a user who came for the first time wait for a second, and whoever managed keys, since all
 * share the pool. So they have half of it, and take turns by the networks of their clients.
 */
export class LookUpTurns {
  readonly #most: number;
  readonly #waiting = new FairQueue<() => void>();
  #running = 0;

  /** `connections`: of the whole pool. */
  constructor(connections: number) {
    this.#most = Math.max(1, Math.floor(connections / 2));
  }

  /** Runs `work` when it is the turn of `asker`. Rejects with StoreAway when that takes too long. */
  async run<T>(asker: string, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#most) this.#running += 1;
    else await this.#turnOf(asker);
    try {
      return await work();
    } finally {
      const next = this.#waiting.take();
      if (next === null) this.#running -= 1;
      else next();
    }
  }

  /** Resolves with the place of one that has ended. */
  #turnOf(asker: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.remove(asker, start);
        reject(new StoreAway(new Error('Too many unknown keys are looked up.'), true));
      }, patienceMs);
      this.#waiting.add(asker, start);
    });
  }
}
