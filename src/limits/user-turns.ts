import { maxQueriesUnderWay } from '../core/account/account-limits.ts';
import { RateLimitError } from '../core/errors.ts';

/** Waiting for one user: a caller that waits in line asks less often than one that is refused at once. */
export const maxWaitingPerUser = 512;

export interface UserTurnsOptions {
  /** Size of the pool that the queries use, from 2 on: one connection is always left for others. */
  readonly connections: number;
  /** How long a query may wait for its user's turn. */
  readonly maxWaitMs: number;
}

interface Waiter {
  readonly begin: () => void;
  readonly timer: NodeJS.Timeout;
}

interface UserQueue {
  underWay: number;
  readonly waiting: Waiter[];
}

/**
 * The share of one user in the connections that all users have in common: a few queries at a time, the rest
 * wait for their own user's turn, so that no user can take a pool away from the others. Counts per replica, and holds
 * nothing for users without a query.
 */
export class UserTurns {
  /** Under way at once for one user. */
  readonly maxUnderWay: number;
  readonly #maxWaitMs: number;
  readonly #queues = new Map<string, UserQueue>();

  constructor({ connections, maxWaitMs }: UserTurnsOptions) {
    if (connections < 2) throw new RangeError('a pool of one connection cannot be shared');
    this.maxUnderWay = Math.min(maxQueriesUnderWay, connections - 1);
    this.#maxWaitMs = maxWaitMs;
  }

  /** `run` in its user's turn. Throws RateLimitError (`too_many_queries`) when the turn does not come in time. */
  share<Args extends readonly unknown[], Result>(
    run: (userId: string, ...args: Args) => Promise<Result>,
  ): (userId: string, ...args: Args) => Promise<Result> {
    return async (userId, ...args) => {
      const queue = this.#queueOf(userId);
      if (queue.underWay < this.maxUnderWay) queue.underWay += 1;
      else await waitIn(queue, this.#maxWaitMs);
      try {
        return await run(userId, ...args);
      } finally {
        this.#end(userId, queue);
      }
    };
  }

  /** Users with a query under way. */
  get users(): number {
    return this.#queues.size;
  }

  #queueOf(userId: string): UserQueue {
    const known = this.#queues.get(userId);
    if (known !== undefined) return known;
    const queue = { underWay: 0, waiting: [] };
    this.#queues.set(userId, queue);
    return queue;
  }

  #end(userId: string, queue: UserQueue): void {
    const next = queue.waiting.shift();
    if (next !== undefined) {
      clearTimeout(next.timer);
      next.begin(); // takes over the turn, so the count stays
      return;
    }
    queue.underWay -= 1;
    if (queue.underWay === 0) this.#queues.delete(userId);
  }
}

function waitIn(queue: UserQueue, maxWaitMs: number): Promise<void> {
  if (queue.waiting.length >= maxWaitingPerUser) return Promise.reject(tooManyQueries());
  return new Promise((begin, reject) => {
    const timer = setTimeout(() => {
      queue.waiting.splice(queue.waiting.indexOf(waiter), 1);
      reject(tooManyQueries());
    }, maxWaitMs);
    const waiter: Waiter = { begin, timer };
    queue.waiting.push(waiter);
  });
}

/** 429: a turn of the user's did not come in time, or too many wait for one. */
export function tooManyQueries(): RateLimitError {
  return new RateLimitError('Too many of your requests of this kind are under way; try again shortly.', {
    code: 'too_many_queries',
    headers: { 'retry-after': '1' },
  });
}
