import type { ResponseCache } from '../../chat/ports.ts';
import type { OnRefusal, RedisConnection } from './connection.ts';
import { isReply } from './connection.ts';
import type { GuardedCommand } from './guarded-connection.ts';
import { GuardedConnection } from './guarded-connection.ts';

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

/** A value that is to be stored for so long. */
interface Entry {
  readonly name: string;
  readonly value: Buffer;
  readonly ttlSeconds: number;
}

/** Answers in Redis. Whatever goes wrong is a miss, within the connection's command timeout. */
export class RedisResponseCache implements ResponseCache {
  readonly #redis: RedisConnection;
  readonly #guarded: GuardedConnection;
  readonly #maxValueBytes: number;
  readonly #onRefusal: OnRefusal;
  #errors = 0;
  readonly #get: GuardedCommand<string, Buffer, Buffer | null> = {
    // A range, so that a huge foreign value is not fetched: one byte too many is enough to know.
    send: (name) => this.#redis.getrangeBuffer(name, 0, this.#longest),
    read: (stored, name) => this.#valueOf(stored, name),
    unsent: null,
    failed: (error, name) => {
      this.#errors += 1;
      if (!isReply(error)) return null;
      if (error.message.startsWith('WRONGTYPE')) this.#drop(name);
      else this.#onRefusal(error.message);
      return null;
    },
  };
  readonly #set: GuardedCommand<Entry, unknown, boolean> = {
    send: ({ name, value, ttlSeconds }) => this.#redis.set(name, wrap(value), 'EX', ttlSeconds),
    read: () => true,
    unsent: false,
    failed: (error) => {
      this.#errors += 1;
      if (isReply(error)) this.#onRefusal(error.message);
      return false;
    },
  };
  readonly #remove: GuardedCommand<string, unknown, void> = {
    send: (name) => this.#redis.unlink(name),
    read: () => undefined,
    unsent: undefined,
    failed: () => undefined,
  };

  /** `redis` comes from `connectRedis`; `nowMs` is monotonic. */
  constructor(
    redis: RedisConnection,
    maxValueBytes: number,
    onRefusal: OnRefusal,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#onRefusal = onRefusal;
    this.#redis = redis;
    this.#guarded = new GuardedConnection(redis, nowMs);
    this.#maxValueBytes = maxValueBytes;
  }

  get(key: string): Promise<Buffer | null> {
    return this.#guarded.run(this.#get, keyPrefix + key);
  }

  set(key: string, value: Buffer, ttlSeconds: number): Promise<boolean> {
    if (value.length > this.#maxValueBytes) return Promise.resolve(false);
    return this.#guarded.run(this.#set, { name: keyPrefix + key, value, ttlSeconds });
  }

  stats(): CacheStats {
    return { errors: this.#errors, up: this.#guarded.isUp };
  }

  get #longest(): number {
    return headerBytes + this.#maxValueBytes;
  }

  /** Null: there is none, or none of ours, which goes. */
  #valueOf(stored: Buffer, name: string): Buffer | null {
    if (stored.length === 0) return null;
    const value = stored.length > this.#longest ? null : unwrap(stored);
    if (value !== null) return value;
    this.#errors += 1;
    this.#drop(name);
    return null;
  }

  /** Nobody waits for it: until it is done the value is only found unusable again. */
  #drop(name: string): void {
    void this.#guarded.run(this.#remove, name);
  }
}
