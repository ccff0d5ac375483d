import { RateLimitError } from '../core/errors.ts';

/** Under way at once for one user: one of the four connections that read logs and statistics is left for others. */
export const maxUnderWay = 3;
/** Waiting for one user: a caller that waits in line asks less often than one that is refused at once. */
export const maxWaiting = 512;
/** As long as a pool lets a query wait for a connection: Postgres is then not what the caller waits for. */
export const maxWaitMs = 900;

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
  readonly #queues = new Map<string, UserQueue>();

  /** `run` in its user's turn. Throws RateLimitError (`too_many_queries`) when the turn does not come in time. */
  share<Args extends readonly unknown[], Result>(
    run: (userId: string, ...args: Args) => Promise<Result>,
  ): (userId: string, ...args: Args) => Promise<Result> {
    return async (userId, ...args) => {
      const queue = this.#queueOf(userId);
      if (queue.underWay < maxUnderWay) queue.underWay += 1;
      else await waitIn(queue);
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

function waitIn(queue: UserQueue): Promise<void> {
  if (queue.waiting.length >= maxWaiting) return Promise.reject(tooMany());
  return new Promise((begin, reject) => {
    const timer = setTimeout(() => {
      queue.waiting.splice(queue.waiting.indexOf(waiter), 1);
      reject(tooMany());
    }, maxWaitMs);
    const waiter: Waiter = { begin, timer };
    queue.waiting.push(waiter);
  });
}

function tooMany(): RateLimitError {
  return new RateLimitError('Too many of your requests of this kind are under way; try again shortly.', {
    code: 'too_many_queries',
    headers: { 'retry-after': '1' },
  });
}
