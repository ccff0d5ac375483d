import { CircuitBreaker } from './circuit-breaker.ts';
import type { RedisConnection } from './connection.ts';
import { isReply } from './connection.ts';

/** One kind of command: made once, run for each request. */
export interface GuardedCommand<Asked, Reply, Answer> {
  send(asked: Asked): Promise<Reply>;
  /** What Redis said, in our words. */
  read(reply: Reply, asked: Asked): Answer;
  /** Redis is not to be asked now: it knows nothing of this. */
  readonly unsent: Answer;
  /** Redis refused, failed or was too slow: it may know of this. */
  failed(error: unknown, asked: Asked): Answer;
}

/**
 * The one way to ask Redis for something that may fail: never while it is away, not while it keeps not answering, and
 * no longer than the connection's command timeout. Each user of a connection has its own, since answers of megabytes
 * may be too slow where counts are not.
 */
export class GuardedConnection {
  readonly #redis: Pick<RedisConnection, 'status'>;
  readonly #nowMs: () => number;
  readonly #breaker = new CircuitBreaker();

  /** `redis` comes from `connectRedis`, whose options this class relies on; `nowMs` is monotonic. */
  constructor(redis: RedisConnection, nowMs: () => number) {
    this.#redis = redis;
    this.#nowMs = nowMs;
    // A handshake has just been answered: that is as good as a probe.
    redis.on('ready', () => this.#breaker.close());
  }

  get isUp(): boolean {
    return this.#redis.status === 'ready';
  }

  /** Whether a command that is run now would be sent. */
  mayAsk(): boolean {
    return this.isUp && this.#breaker.mayBegin(this.#nowMs());
  }

  /** Sends at once, if at all. Rejects only by what `read` or `failed` throws. */
  async run<Asked, Reply, Answer>(
    command: GuardedCommand<Asked, Reply, Answer>,
    asked: Asked,
  ): Promise<Answer> {
    const era = this.isUp ? this.#breaker.begin(this.#nowMs()) : null;
    if (era === null) return command.unsent;
    let reply: Reply;
    try {
      reply = await command.send(asked);
    } catch (error) {
      if (isReply(error)) this.#breaker.succeeded(era);
      else this.#breaker.failed(era, this.#nowMs());
      return command.failed(error, asked);
    }
    this.#breaker.succeeded(era);
    return command.read(reply, asked);
  }
}
