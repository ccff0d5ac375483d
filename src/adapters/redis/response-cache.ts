import type { ResponseCache } from '../../chat/ports.ts';
import type { GuardedCall } from './circuit-breaker.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import type { RedisConnection } from './connection.ts';
import { isReply } from './connection.ts';

/** Names our entries in a server that others may share. */
const keyPrefix = 'gw:answer:';
/** Magic, format version, then the length of the value: tells our values from others' and whole ones from cut ones. */
const magic = Buffer.from('GWC\u0001', 'latin1');
const headerBytes = magic.length + 4;

export interface CacheStats {
  /** Commands that failed or timed out, and values that were not ours. */
  readonly errors: number;
  readonly up: boolean;
}

function wrap(value: Buffer): Buffer {
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32BE(value.length);
  return Buffer.concat([magic, length, value]);
}

function unwrap(stored: Buffer): Buffer | null {
  if (stored.length < headerBytes || magic.compare(stored, 0, magic.length) !== 0) return null;
  return stored.readUInt32BE(magic.length) === stored.length - headerBytes
    ? stored.subarray(headerBytes)
    : null;
}

/** Answers in Redis. Whatever goes wrong is a miss, within the connection's command timeout. */
export class RedisResponseCache implements ResponseCache {
  readonly #redis: RedisConnection;
  readonly #maxValueBytes: number;
  readonly #nowMs: () => number;
  readonly #breaker = new CircuitBreaker();
  #errors = 0;

  /** `redis` comes from `connectRedis`, whose options this class relies on; `nowMs` is monotonic. */
  constructor(redis: RedisConnection, maxValueBytes: number, nowMs: () => number = () => performance.now()) {
    this.#redis = redis;
    this.#maxValueBytes = maxValueBytes;
    this.#nowMs = nowMs;
    // A handshake has just been answered: that is as good as a probe.
    redis.on('ready', () => this.#breaker.close());
  }

  get(key: string): Promise<Buffer | null> {
    return this.#read(keyPrefix + key);
  }

  async set(key: string, value: Buffer, ttlSeconds: number): Promise<void> {
    if (value.length > this.#maxValueBytes) return;
    const call = this.#begin();
    if (call === null) return;
    try {
      await this.#redis.set(keyPrefix + key, wrap(value), 'EX', ttlSeconds);
      this.#breaker.succeeded(call);
    } catch (error) {
      this.#note(call, error);
    }
  }

  stats(): CacheStats {
    return { errors: this.#errors, up: this.#redis.status === 'ready' };
  }

  async #read(name: string): Promise<Buffer | null> {
    const call = this.#begin();
    if (call === null) return null;
    const longest = headerBytes + this.#maxValueBytes;
    let stored: Buffer;
    try {
      // A range, so that a huge foreign value is not fetched: one byte too many is enough to know.
      stored = await this.#redis.getrangeBuffer(name, 0, longest);
      this.#breaker.succeeded(call);
    } catch (error) {
      this.#note(call, error);
      if (isReply(error) && error.message.startsWith('WRONGTYPE')) this.#remove(name);
      return null;
    }
    if (stored.length === 0) return null;
    const value = stored.length > longest ? null : unwrap(stored);
    if (value === null) {
      this.#errors += 1;
      this.#remove(name);
    }
    return value;
  }

  /** Null: Redis is not to be asked now. */
  #begin(): GuardedCall | null {
    return this.#redis.status === 'ready' ? this.#breaker.begin(this.#nowMs()) : null;
  }

  #note(call: GuardedCall, error: unknown): void {
    this.#errors += 1;
    if (isReply(error)) this.#breaker.succeeded(call);
    else this.#breaker.failed(call, this.#nowMs());
  }

  /** Nobody waits for it: until it is done the value is only found unusable again. */
  #remove(name: string): void {
    this.#redis.unlink(name).catch(() => undefined);
  }
}
