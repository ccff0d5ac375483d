import type { NamedLimit } from '../../limits/ports.ts';
import type { RedisConnection } from './connection.ts';
import type { GuardedCommand } from './guarded-connection.ts';
import { GuardedConnection } from './guarded-connection.ts';

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

/** Counts calls of all replicas in Redis: one command each, within the connection's command timeout. */
export class SharedWindows {
  readonly #guarded: GuardedConnection;
  readonly #take: GuardedCommand<readonly NamedLimit[], unknown, number | null>;

  /** `redis` comes from `connectRedis`. */
  constructor(redis: RedisConnection, group: string, windowMs: number) {
    this.#guarded = new GuardedConnection(redis, () => performance.now());
    this.#take = {
      send: (limits) => {
        const names = limits.map(({ name }) => `${keyPrefix}{${group}}:${name}`);
        return redis.eval(script, names.length, ...names, windowMs, ...limits.map(({ limit }) => limit));
      },
      read: (leftMs) => (typeof leftMs === 'number' ? leftMs : null),
      unsent: null,
      failed: () => null,
    };
  }

  /**
   * Milliseconds until the first full window ends, 0 when all have room. Null when Redis does not say: then each
   * replica counts for itself.
   */
  take(limits: readonly NamedLimit[]): Promise<number | null> {
    return this.#guarded.run(this.#take, limits);
  }
}
