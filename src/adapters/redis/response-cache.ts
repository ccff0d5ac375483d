import type { CacheOwner, ResponseCache } from '../../chat/ports.ts';
import { BulkBytes } from './bulk-bytes.ts';
import type { OnRefusal, RedisConnection } from './connection.ts';
import { isReply } from './connection.ts';
import type { GuardedCommand } from './guarded-connection.ts';
import { GuardedConnection } from './guarded-connection.ts';
import { storeScript } from './store-script.ts';

/** Names our entries in a server that others may share; those of a user lie together, for the script. */
const keyPrefix = 'gw:answer:';
/** Magic, format version, then the length of the value: tells our values from others' and whole ones from cut ones. */
const magic = Buffer.from('GWC\u0001', 'latin1');
const headerBytes = magic.length + 4;
/**
 * What goes over the connection that everybody's look-ups share: a reply keeps those behind it waiting, this one for a
 * millisecond on 100 Mbit/s. Most answers are shorter; the rest of a longer one comes by the other connection.
 */
const mostOfShared = 16 * 1024;

/** How long no value of a user's is sent that is as long as one for which there was no room: each would travel. */
const fullMs = 10_000;
/** Then all are asked for again. */
const mostKnownFull = 1_000;

/** A value for which its user's share had no room. */
interface TooLong {
  readonly bytes: number;
  readonly untilMs: number;
}

/** Two connections to the same server. */
export interface CacheConnections {
  /** Commands and replies that are short. */
  readonly short: RedisConnection;
  /** Those of megabytes, for which nobody else is to wait. */
  readonly bulk: RedisConnection;
}

export interface CacheStats {
  /** Commands that failed or timed out, and values that were not ours. */
  readonly errors: number;
  /** Answers that were not stored, since their user has stored enough, or too much of them was on the way. */
  readonly unstored: number;
  readonly up: boolean;
}

interface Entry {
  readonly name: string;
  readonly userId: string;
  readonly wrapped: Buffer;
  readonly ttlSeconds: number;
  readonly mostBytes: number;
}

/** What lies behind the first bytes of a long value. */
interface Rest {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** As `defineCommand` makes it. */
interface Scripted {
  gwStoreAnswer(
    name: string,
    ledger: string,
    wrapped: Buffer,
    ttlSeconds: number,
    mostBytes: number,
  ): Promise<unknown>;
}

function wrap(value: Buffer): Buffer {
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32BE(value.length);
  return Buffer.concat([magic, length, value]);
}

/** Bytes of the whole, header and all, as its header says; null for what is none of ours. */
function wholeLength(head: Buffer): number | null {
  if (head.length < headerBytes || magic.compare(head, 0, magic.length) !== 0) return null;
  return headerBytes + head.readUInt32BE(magic.length);
}

/**
 * Answers in Redis. Whatever goes wrong is a miss, within the connection's command timeout. No user holds more than
 * its share, and none is kept waiting by the megabytes of another.
 */
export class RedisResponseCache implements ResponseCache {
  readonly #short: GuardedConnection;
  readonly #bulk: GuardedConnection;
  readonly #underWay = new BulkBytes();
  readonly #maxValueBytes: number;
  readonly #onRefusal: OnRefusal;
  readonly #nowMs: () => number;
  /** The last one of each user. */
  readonly #refused = new Map<string, TooLong>();
  #errors = 0;
  #unstored = 0;
  readonly #get: GuardedCommand<string, Buffer, Buffer | null>;
  readonly #getRest: GuardedCommand<Rest, Buffer, Buffer | null>;
  readonly #remove: GuardedCommand<string, unknown, void>;
  readonly #setShort: GuardedCommand<Entry, unknown, boolean>;
  readonly #setLong: GuardedCommand<Entry, unknown, boolean>;

  /** Both come from `connectRedis`; `nowMs` is monotonic. */
  constructor(
    { short, bulk }: CacheConnections,
    maxValueBytes: number,
    onRefusal: OnRefusal,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#onRefusal = onRefusal;
    this.#maxValueBytes = maxValueBytes;
    this.#nowMs = nowMs;
    this.#short = new GuardedConnection(short, nowMs);
    this.#bulk = new GuardedConnection(bulk, nowMs);
    const failed = (error: unknown, name: string): null => {
      this.#errors += 1;
      if (!isReply(error)) return null;
      if (error.message.startsWith('WRONGTYPE')) this.#drop(name);
      else this.#onRefusal(error.message);
      return null;
    };
    const read = (bytes: Buffer): Buffer => bytes;
    this.#get = {
      // One byte more than a short one has: there is none behind it.
      send: (name) => short.getrangeBuffer(name, 0, mostOfShared),
      read,
      unsent: null,
      failed,
    };
    this.#getRest = {
      send: ({ name, from, to }) => bulk.getrangeBuffer(name, from, to),
      read,
      unsent: null,
      failed: (error, { name }) => failed(error, name),
    };
    this.#remove = {
      send: (name) => short.unlink(name),
      read: () => undefined,
      unsent: undefined,
      failed: () => undefined,
    };
    this.#setShort = this.#setOver(short);
    this.#setLong = this.#setOver(bulk);
  }

  async get(key: string, userId: string): Promise<Buffer | null> {
    const name = nameOf(key, userId);
    const head = await this.#short.run(this.#get, name);
    if (head === null || head.length === 0) return null;
    const length = wholeLength(head);
    if (length === null || length - headerBytes > this.#maxValueBytes) return this.#unusable(name);
    if (head.length === length) return head.subarray(headerBytes);
    if (length <= mostOfShared || head.length <= mostOfShared) return this.#unusable(name);
    return this.#getLong(name, head, length, userId);
  }

  async set(key: string, value: Buffer, ttlSeconds: number, owner: CacheOwner): Promise<boolean> {
    const { userId, mostBytes } = owner;
    if (value.length > this.#maxValueBytes) return false;
    if (value.length > mostBytes || this.#isFull(userId, value.length)) return this.#isUnstored();
    const wrapped = wrap(value);
    const entry = { name: nameOf(key, userId), userId, wrapped, ttlSeconds, mostBytes };
    if (wrapped.length <= mostOfShared) return this.#short.run(this.#setShort, entry);
    const stored = await this.#underWay.move(userId, wrapped.length, () =>
      this.#bulk.run(this.#setLong, entry),
    );
    return stored ?? this.#isUnstored();
  }

  stats(): CacheStats {
    return { errors: this.#errors, unstored: this.#unstored, up: this.#short.isUp && this.#bulk.isUp };
  }

  #isFull(userId: string, bytes: number): boolean {
    const refused = this.#refused.get(userId);
    return refused !== undefined && refused.untilMs > this.#nowMs() && bytes >= refused.bytes;
  }

  #isUnstored(): false {
    this.#unstored += 1;
    return false;
  }

  #setOver(redis: RedisConnection): GuardedCommand<Entry, unknown, boolean> {
    redis.defineCommand('gwStoreAnswer', { numberOfKeys: 2, lua: storeScript });
    const scripts = redis as unknown as Scripted;
    return {
      send: ({ name, userId, wrapped, ttlSeconds, mostBytes }) =>
        scripts.gwStoreAnswer(name, `gw:answers:{${userId}}`, wrapped, ttlSeconds, mostBytes),
      read: (stored, { userId, wrapped }) => {
        if (stored === 1) return true;
        if (this.#refused.size >= mostKnownFull) this.#refused.clear();
        this.#refused.set(userId, { bytes: wrapped.length - headerBytes, untilMs: this.#nowMs() + fullMs });
        return this.#isUnstored();
      },
      unsent: false,
      failed: (error) => {
        this.#errors += 1;
        if (isReply(error)) this.#onRefusal(error.message);
        return false;
      },
    };
  }

  /**
   * One byte too many is asked for, too. Where another value was stored in between, or this one has expired, the parts
   * do not fit: a miss, after which a new one is stored. Parts that fit, of values that were sealed apart, open for
   * nobody (`SealedResponseCache`).
   */
  async #getLong(name: string, head: Buffer, length: number, userId: string): Promise<Buffer | null> {
    const rest = { name, from: head.length, to: length };
    const found = await this.#underWay.move(userId, length - head.length, () =>
      this.#bulk.run(this.#getRest, rest),
    );
    if (found === null || head.length + found.length !== length) return null;
    return Buffer.concat([head, found]).subarray(headerBytes);
  }

  /** It goes, so that the next answer takes its place. */
  #unusable(name: string): null {
    this.#errors += 1;
    this.#drop(name);
    return null;
  }

  /** Nobody waits for it: until it is done the value is only found unusable again. */
  #drop(name: string): void {
    void this.#short.run(this.#remove, name);
  }
}

/** A script touches an entry and its user's ledger: on a cluster both have to lie on one node. */
function nameOf(key: string, userId: string): string {
  return `${keyPrefix}{${userId}}:${key}`;
}
