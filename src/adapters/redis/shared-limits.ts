import type { MinuteLimit } from '../../core/limits/limit-table.ts';
import { minuteMs, streamLeaseMs } from '../../core/limits/minute.ts';
import type { SharedAnswer, SharedRequest, UserNews } from '../../core/limits/shared-counts.ts';
import type { NoAnswer, SharedLimits } from '../../limits/ports.ts';
import type { OnRefusal, RedisConnection } from './connection.ts';
import { isReply } from './connection.ts';
import type { GuardedCommand } from './guarded-connection.ts';
import { GuardedConnection } from './guarded-connection.ts';

/** The names of one user share a hash tag, so that one script may touch them all on a cluster. */
const keyPrefix = 'gw:user:';

/**
 * What is settled is added, and the window begins where there is none. ARGV: window in ms, requests and tokens to add,
 * replica, its streams (-1: as they were), lease in ms.
 */
const settleLua = `
local now = redis.call('TIME')
local nowMs = now[1] * 1000 + math.floor(now[2] / 1000)
if tonumber(ARGV[2]) > 0 then redis.call('HINCRBY', KEYS[1], 'requests', ARGV[2]) end
if tonumber(ARGV[3]) > 0 then redis.call('HINCRBY', KEYS[1], 'tokens', ARGV[3]) end
if redis.call('PTTL', KEYS[1]) == -1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
local streams = tonumber(ARGV[5])
if streams == 0 then redis.call('HDEL', KEYS[2], ARGV[4]) end
if streams > 0 then
  redis.call('HSET', KEYS[2], ARGV[4], string.format('%d:%d', streams, nowMs + ARGV[6]))
  redis.call('PEXPIRE', KEYS[2], ARGV[6])
end`;

/**
 * Settles as above, then decides for one more request: nothing is counted of one that is refused. ARGV goes on: 1 for
 * a stream, then the limits by `numbersInScript` (-1: none). ARGV[5] is then what the replica has with this one.
 * Answers which of the limits refused (0: none), requests, tokens, ms left of the window, streams of other replicas.
 */
const admitLua = `
local now = redis.call('TIME')
local nowMs = now[1] * 1000 + math.floor(now[2] / 1000)
local window = redis.call('HMGET', KEYS[1], 'requests', 'tokens')
local requests = tonumber(window[1] or 0) + ARGV[2]
local tokens = tonumber(window[2] or 0) + ARGV[3]
local isStream = ARGV[7] == '1'
local most, mostTokens, mostStreams = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local others = 0
if isStream then
  local held = redis.call('HGETALL', KEYS[2])
  for at = 1, #held, 2 do
    local count, ends = string.match(held[at + 1], '^(%d+):(%d+)$')
    if held[at] ~= ARGV[4] then
      if count and tonumber(ends) > nowMs then others = others + count
      else redis.call('HDEL', KEYS[2], held[at]) end
    end
  end
end
local refused = 0
if most >= 0 and requests >= most then refused = 1
elseif mostTokens >= 0 and tokens >= mostTokens then refused = 2
elseif isStream and mostStreams >= 0 and others + ARGV[5] > mostStreams then refused = 3
else
  requests = requests + 1
  if isStream then
    redis.call('HSET', KEYS[2], ARGV[4], string.format('%d:%d', tonumber(ARGV[5]), nowMs + ARGV[6]))
    redis.call('PEXPIRE', KEYS[2], ARGV[6])
  end
end
redis.call('HSET', KEYS[1], 'requests', requests, 'tokens', tokens)
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = tonumber(ARGV[1])
  redis.call('PEXPIRE', KEYS[1], left)
end
return {refused, requests, tokens, left, others}`;

/** Each limit by its number in the script: its place among those in ARGV, and what is answered where it refuses. */
const numbersInScript: Readonly<Record<MinuteLimit, number>> = { requests: 1, tokens: 2, streams: 3 };
const limitsOfScript = (Object.keys(numbersInScript) as MinuteLimit[]).toSorted(
  (one, other) => numbersInScript[one] - numbersInScript[other],
);

type Arguments = readonly (string | number)[];

/** The connection with both scripts as commands. */
interface Scripted {
  gwAdmit(...args: Arguments): Promise<unknown>;
  gwSettle(...args: Arguments): Promise<unknown>;
}

interface Settled {
  readonly news: readonly UserNews[];
  readonly onRefused: (place: number) => void;
}

/** Counts of users over all replicas, in Redis. */
export class RedisLimits implements SharedLimits {
  readonly #guarded: GuardedConnection;
  readonly #scripts: Scripted;
  readonly #replica: string;
  readonly #onRefusal: OnRefusal;
  readonly #admit: GuardedCommand<SharedRequest, unknown, SharedAnswer | NoAnswer> = {
    send: (request) =>
      this.#scripts.gwAdmit(
        ...this.#told(request),
        Number(request.isStream && request.most.streams !== null),
        ...limitsOfScript.map((limit) => request.most[limit] ?? -1),
      ),
    read: (reply) => {
      if (!Array.isArray(reply)) return 'unanswered';
      const [refused = 0, requests = 0, tokens = 0, leftMs = 0, otherStreams = 0] = reply as number[];
      return { refusedBy: limitsOfScript[refused - 1] ?? null, requests, tokens, leftMs, otherStreams };
    },
    unsent: 'unsent',
    // Out of memory, a standby, still loading: the scripts fail at their first write, and nothing was counted.
    failed: (error) => {
      if (!isReply(error)) return 'unanswered';
      this.#onRefusal(error.message);
      return 'unsent';
    },
  };
  readonly #settle: GuardedCommand<Settled, unknown, void> = {
    // No pipeline of the driver's: on a cluster users live on several servers.
    send: ({ news, onRefused }) =>
      Promise.all(
        news.map((one, place) =>
          this.#scripts.gwSettle(...this.#told(one)).catch((error: unknown) => {
            if (!isReply(error)) throw error;
            onRefused(place);
          }),
        ),
      ),
    read: () => undefined,
    unsent: undefined,
    failed: () => undefined,
  };

  /** `redis` comes from `connectRedis`; `replica` is unique among all. */
  constructor(redis: RedisConnection, replica: string, onRefusal: OnRefusal) {
    this.#onRefusal = onRefusal;
    redis.defineCommand('gwAdmit', { numberOfKeys: 2, lua: admitLua });
    redis.defineCommand('gwSettle', { numberOfKeys: 2, lua: settleLua });
    this.#guarded = new GuardedConnection(redis, () => performance.now());
    this.#scripts = redis as unknown as Scripted;
    this.#replica = replica;
  }

  admit(request: SharedRequest): Promise<SharedAnswer | NoAnswer> {
    return this.#guarded.run(this.#admit, request);
  }

  settle(news: readonly UserNews[], onRefused: (place: number) => void): boolean {
    if (!this.#guarded.mayAsk()) return false;
    void this.#guarded.run(this.#settle, { news, onRefused });
    return true;
  }

  #told({ userId, requests, tokens, streams }: UserNews): Arguments {
    const names = [`${keyPrefix}{${userId}}:minute`, `${keyPrefix}{${userId}}:streams`];
    return [...names, minuteMs, requests, tokens, this.#replica, streams ?? -1, streamLeaseMs];
  }
}
