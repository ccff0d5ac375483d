import { CircuitBreaker } from './circuit-breaker.ts';
import type { RedisConnection } from './connection.ts';
import { isReply } from './connection.ts';

/** The names share a hash tag, so that one script may touch them all on a cluster. */
const keyPrefix = 'gw:limit:';

/**
 * Counts one call in each window and stops at the first that is full, whose rest in ms it answers: so a call that its
 * first window refuses does not use up the next. A window begins with its first call and ends by itself.
 */
const script = `
for index, name in ipairs(KEYS) do
  local count = redis.call('INCR', name)
  local left = redis.call('PTTL', name)
  if left < 0 then
    redis.call('PEXPIRE', name, ARGV[1])
    left = tonumber(ARGV[1])
  end
  if count > tonumber(ARGV[index + 1]) then return left end
end
return 0`;

/** A limit on calls per window; the name is unique within its group. */
export interface NamedLimit {
  readonly name: string;
  readonly limit: number;
}

/** Counts calls of all replicas in Redis: one command each, within the connection's command timeout. */
export class SharedWindows {
  readonly #redis: RedisConnection;
  readonly #group: string;
  readonly #windowMs: number;
  readonly #nowMs: () => number;
  readonly #breaker = new CircuitBreaker();

  /** `redis` comes from `connectRedis`, whose options this class relies on; `nowMs` is monotonic. */
  constructor(
    redis: RedisConnection,
    group: string,
    windowMs: number,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#redis = redis;
    this.#group = group;
    this.#windowMs = windowMs;
    this.#nowMs = nowMs;
    redis.on('ready', () => this.#breaker.close());
  }

  /**
   * Milliseconds until the first full window ends, 0 when all have room. Null when Redis does not say: then each
   * replica counts for itself.
   */
  async take(limits: readonly NamedLimit[]): Promise<number | null> {
    const call = this.#redis.status === 'ready' ? this.#breaker.begin(this.#nowMs()) : null;
    if (call === null) return null;
    const names = limits.map(({ name }) => `${keyPrefix}{${this.#group}}:${name}`);
    try {
      const left = await this.#redis.eval(
        script,
        names.length,
        ...names,
        this.#windowMs,
        ...limits.map(({ limit }) => limit),
      );
      this.#breaker.succeeded(call);
      return typeof left === 'number' ? left : null;
    } catch (error) {
      if (isReply(error)) this.#breaker.succeeded(call);
      else this.#breaker.failed(call, this.#nowMs());
      return null;
    }
  }
}
