import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RedisConnection } from '../../../src/adapters/redis/connection.ts';
import { connectRedis } from '../../../src/adapters/redis/connection.ts';
import { RedisResponseCache } from '../../../src/adapters/redis/response-cache.ts';
import { expectInTime } from '../../harness/measure/fault-bounds.ts';
import type { RedisProcess } from '../../harness/servers/redis.ts';
import { startRedis } from '../../harness/servers/redis.ts';

/** The default of `connectRedis`. */
const commandTimeoutMs = 40;
/** docs/decisions: what a call may lose to a cache that is gone or slow. */
const slowMs = 50;
const openMs = 1;
/** Against hanging only. */
const recoveredWithinMs = 45_000;
const maxValueBytes = 1_000_000;
/** Where slowness is not what is tested, a busy machine must not look like a sick server. */
const patientMs = 30_000;
const value = Buffer.from([0, 1, 2, 255, 254]);

let server: RedisProcess;
let direct: Redis;
let redis: RedisConnection;
let bulk: RedisConnection;
let cache: RedisResponseCache;
let nowMs: number;
const downs: string[] = [];
const refusals: string[] = [];

const ada = { userId: 'ada', mostBytes: 100 * 1024 * 1024 };
const get = (from: RedisResponseCache, key: string, { userId } = ada): Promise<Buffer | null> =>
  from.get(key, userId);
const set = (into: RedisResponseCache, key: string, bytes: Buffer, ttlSeconds: number, owner = ada) =>
  into.set(key, bytes, ttlSeconds, owner);

async function open(timeoutMs: number): Promise<void> {
  server = await startRedis();
  direct = new Redis(server.url);
  direct.on('error', () => undefined);
  redis = connectRedis(server.url, { commandTimeoutMs: timeoutMs, onDown: (message) => downs.push(message) });
  bulk = connectRedis(server.url, { commandTimeoutMs: timeoutMs });
  nowMs = 0;
  cache = new RedisResponseCache(
    { short: redis, bulk },
    maxValueBytes,
    (words) => refusals.push(words),
    () => nowMs,
  );
  await Promise.all([once(redis, 'ready'), once(bulk, 'ready')]);
}

beforeEach(() => {
  downs.length = 0;
  refusals.length = 0;
});

afterEach(async () => {
  redis.disconnect();
  bulk.disconnect();
  direct.disconnect();
  await server.close();
});

/** Unlike `events.once`, does not take an `error` on the way for a failure: those are what is tested. */
function once(emitter: RedisConnection, event: string, withinMs = recoveredWithinMs): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no "${event}" within ${withinMs} ms`)), withinMs);
    emitter.once(event, () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

async function timed<T>(work: Promise<T>): Promise<{ result: T; tookMs: number }> {
  const startedMs = performance.now();
  const result = await work;
  return { result, tookMs: performance.now() - startedMs };
}

describe('with a healthy server', () => {
  beforeEach(() => open(patientMs));

  test('gives back what was set, bytes as they were, for its time', async () => {
    await set(cache, 'k', value, 60);
    expect(await get(cache, 'k')).toEqual(value);
    expect(await direct.ttl('gw:answer:{ada}:k')).toBeGreaterThan(55);
    expect(cache.stats()).toEqual({ errors: 0, unstored: 0, up: true });
  });

  test('forgets what has expired', async () => {
    await set(cache, 'k', value, 60);
    await direct.pexpire('gw:answer:{ada}:k', 0);
    expect(await get(cache, 'k')).toBeNull();
  });

  test('knows nothing under another key', async () => {
    await set(cache, 'k', value, 60);
    expect(await get(cache, 'K')).toBeNull();
    expect(cache.stats()).toMatchObject({ errors: 0 });
  });

  test('keeps a value of exactly the limit and refuses a longer one', async () => {
    await set(cache, 'fits', Buffer.alloc(maxValueBytes, 7), 60);
    await set(cache, 'too long', Buffer.alloc(maxValueBytes + 1, 7), 60);
    expect((await get(cache, 'fits'))?.length).toBe(maxValueBytes);
    expect(await direct.exists('gw:answer:{ada}:too long')).toBe(0);
  });

  test('keeps an empty value', async () => {
    await set(cache, 'k', Buffer.alloc(0), 60);
    expect(await get(cache, 'k')).toEqual(Buffer.alloc(0));
  });

  test.each<[string, (name: string) => Promise<unknown>]>([
    ['of another type', (name) => direct.rpush(name, 'x')],
    ['that is foreign text', (name) => direct.set(name, '{"choices":[]}')],
    ['of another version', (name) => direct.set(name, Buffer.from('GWC\u0002\0\0\0\u0001x', 'latin1'))],
    ['that was cut', (name) => direct.set(name, Buffer.from('GWC\u0001\0\0\0\u0005four', 'latin1'))],
    [
      'that has something behind it',
      (name) => direct.set(name, Buffer.from('GWC\u0001\0\0\0\u0001xy', 'latin1')),
    ],
    ['that is half a header', (name) => direct.set(name, 'GWC')],
    ['of 50 MB', (name) => direct.set(name, Buffer.alloc(50 * 1024 * 1024))],
  ])('a value %s is a miss, and removed', async (_what, write) => {
    await write('gw:answer:{ada}:k');
    const { result, tookMs } = await timed(get(cache, 'k'));
    expect(result).toBeNull();
    expectInTime(tookMs, slowMs);
    // The same connection: answered after the removal.
    expect(await redis.exists('gw:answer:{ada}:k')).toBe(0);
    expect(cache.stats()).toMatchObject({ errors: 1 });
    await set(cache, 'k', value, 60);
    expect(await get(cache, 'k')).toEqual(value);
  });
});

/** Whatever Redis takes beside a value. */
const overheadBytes = 1_000;

describe('the share of a user', () => {
  const eve = { userId: 'eve', mostBytes: 100_000 };
  beforeEach(() => open(patientMs));

  test('ends what is stored, and nobody else feels it', async () => {
    const kept: boolean[] = [];
    for (let n = 0; n < 20; n += 1) kept.push(await set(cache, `k${n}`, Buffer.alloc(9_000), 60, eve));
    expect(kept).toEqual([...Array(10).fill(true), ...Array(10).fill(false)]);
    expect(cache.stats()).toMatchObject({ errors: 0, unstored: 10 });
    expect(await set(cache, 'k', value, 60)).toBe(true);
    expect(await get(cache, 'k19', eve)).toBeNull();
    expect(await get(cache, 'k9', eve)).not.toBeNull();
  });

  test('counts what an entry takes beside its value', async () => {
    let stored = 0;
    while (stored < 2_000 && (await set(cache, `k${stored}`, Buffer.alloc(1), 60, eve))) stored += 1;
    expect(stored).toBeLessThan(500);
  });

  test('counts long values too', async () => {
    expect(await set(cache, 'a', Buffer.alloc(60_000), 60, eve)).toBe(true);
    expect(await set(cache, 'b', Buffer.alloc(60_000), 60, eve)).toBe(false);
    // There is room for shorter ones.
    expect(await set(cache, 'c', Buffer.alloc(20_000), 60, eve)).toBe(true);
    expect(await set(cache, 'd', Buffer.alloc(100_001), 60, eve)).toBe(false);
  });

  test('is free again when what was stored has expired, and leaves nothing behind', async () => {
    expect(await set(cache, 'a', Buffer.alloc(99_000), 60, eve)).toBe(true);
    expect(await set(cache, 'b', Buffer.alloc(2_000), 60, eve)).toBe(false);
    const [slice = ''] = await direct.hkeys('gw:answers:{eve}');
    expect(Number(slice)).toBeGreaterThan(Date.now() / 1000 + 59);
    expect(Number(slice)).toBeLessThan(Date.now() / 1000 + 660);
    expect(await direct.ttl('gw:answers:{eve}')).toBeGreaterThan(55);
    expect(await direct.ttl('gw:answers:{eve}')).toBeLessThanOrEqual(660);
    // As if the time had come.
    await direct.hset('gw:answers:{eve}', '1000', 99_000);
    await direct.hdel('gw:answers:{eve}', slice);
    expect(await set(cache, 'b', Buffer.alloc(2_000), 60, eve)).toBe(false);
    nowMs += 10_000;
    expect(await set(cache, 'b', Buffer.alloc(99_000 - overheadBytes), 86_400, eve)).toBe(true);
    expect(await direct.hexists('gw:answers:{eve}', '1000')).toBe(0);
    expect(await direct.ttl('gw:answers:{eve}')).toBeGreaterThan(86_390);
  });
});

describe('a long value', () => {
  beforeEach(() => open(patientMs));

  test.each([16_375, 16_376, 16_377, 16_378, 20_000, 1_000_000])(
    'of %i bytes comes back as it was',
    async (length) => {
      const long = randomBytes(length);
      expect(await set(cache, 'k', long, 60)).toBe(true);
      expect(await get(cache, 'k')).toEqual(long);
      expect(cache.stats()).toMatchObject({ errors: 0 });
    },
  );

  test.each<[string, (name: string) => Promise<unknown>]>([
    [
      'was cut within its head',
      async (name) => direct.set(name, await direct.getrangeBuffer(name, 0, 9_999)),
    ],
    ['was cut behind it', async (name) => direct.set(name, await direct.getrangeBuffer(name, 0, 19_999))],
    ['has something behind it', (name) => direct.append(name, 'x')],
    ['has expired', (name) => direct.unlink(name)],
  ])('that %s is a miss, after which another is stored', async (_what, change) => {
    await set(cache, 'k', randomBytes(30_000), 60);
    await change('gw:answer:{ada}:k');
    expect(await get(cache, 'k')).toBeNull();
    const newer = randomBytes(30_000);
    expect(await set(cache, 'k', newer, 60)).toBe(true);
    expect(await get(cache, 'k')).toEqual(newer);
  });

  test('keeps nobody waiting who asks for a short one, and its breaker is its own', async () => {
    await set(cache, 'short', value, 60);
    await set(cache, 'long', Buffer.alloc(900_000), 60);
    bulk.disconnect();
    for (let n = 0; n < 10; n += 1) {
      expect(await get(cache, 'long')).toBeNull();
      expect(await set(cache, 'other', Buffer.alloc(900_000), 60)).toBe(false);
    }
    expect(await get(cache, 'short')).toEqual(value);
    expect(await set(cache, 'shorter', value, 60)).toBe(true);
  });
});

describe('a server that hangs', () => {
  beforeEach(() => open(commandTimeoutMs));
  afterEach(() => server.continueSignal());

  test('is a miss within the limit, and costs nothing once the breaker is open', async () => {
    await set(cache, 'k', value, 60);
    server.stopSignal();
    for (let n = 0; n < 5; n += 1) {
      const { result, tookMs } = await timed(get(cache, 'k'));
      expect(result).toBeNull();
      expectInTime(tookMs, slowMs);
    }
    expect(cache.stats()).toMatchObject({ errors: 5 });
    const { result, tookMs } = await timed(Promise.all(Array.from({ length: 100 }, () => get(cache, 'k'))));
    expect(result).toEqual(Array(100).fill(null));
    expectInTime(tookMs, 100 * openMs);
    expect(cache.stats().errors).toBe(5);
    await expect(timed(set(cache, 'k', value, 60))).resolves.toMatchObject({ result: false });
  });

  test('is asked again by one caller at a time, and used again when it answers', async () => {
    await set(cache, 'k', value, 60);
    server.stopSignal();
    for (let n = 0; n < 5; n += 1) await get(cache, 'k');
    nowMs += 1000;
    await Promise.all(Array.from({ length: 10 }, () => get(cache, 'k')));
    expect(cache.stats()).toMatchObject({ errors: 6 });

    server.continueSignal();
    const deadlineMs = performance.now() + recoveredWithinMs;
    let hit: Buffer | null = null;
    while (hit === null && performance.now() < deadlineMs) {
      nowMs += 1000;
      hit = await get(cache, 'k');
      if (redis.status !== 'ready') await once(redis, 'ready');
    }
    expect(hit).toEqual(value);
  });
});

test('a server that dies and comes back: misses at once, one report, then hits again', async () => {
  await open(patientMs);
  await set(cache, 'k', value, 60);
  const closed = once(redis, 'close');
  await server.kill();
  await closed;
  const { result, tookMs } = await timed(Promise.all(Array.from({ length: 100 }, () => get(cache, 'k'))));
  expect(result).toEqual(Array(100).fill(null));
  expectInTime(tookMs, 100 * openMs);
  expect(cache.stats().up).toBe(false);

  const ready = once(redis, 'ready');
  await server.start();
  await ready;
  await set(cache, 'k', value, 60);
  expect(await get(cache, 'k')).toEqual(value);
  expect(downs).toHaveLength(1);
});

test('a server that is not there at the start is a miss, and used when it comes', async () => {
  await open(patientMs);
  await server.kill();
  const late = connectRedis(server.url, { commandTimeoutMs: patientMs });
  const lateCache = new RedisResponseCache({ short: late, bulk: late }, maxValueBytes, () => undefined);
  const { result, tookMs } = await timed(get(lateCache, 'k'));
  expect(result).toBeNull();
  expectInTime(tookMs, 10 * openMs);
  const ready = once(late, 'ready');
  await server.start();
  await ready;
  await set(lateCache, 'k', value, 60);
  expect(await get(lateCache, 'k')).toEqual(value);
  late.disconnect();
});

test('a full server takes no more, still answers, and does not open the breaker', async () => {
  await open(patientMs);
  await set(cache, 'kept', value, 60);
  await direct.config('SET', 'maxmemory-policy', 'noeviction');
  await direct.config('SET', 'maxmemory', '1');
  for (let n = 0; n < 10; n += 1) expect(await set(cache, `k${n}`, value, 60)).toBe(false);
  expect(cache.stats()).toMatchObject({ errors: 10, up: true });
  expect(refusals).toEqual(Array(10).fill(expect.stringMatching(/^OOM /)));
  expect(await get(cache, 'kept')).toEqual(value);
});

test('a read-only replica and a server that wants a password are misses', async () => {
  await open(patientMs);
  await direct.replicaof('127.0.0.1', '1');
  await set(cache, 'k', value, 60);
  expect(cache.stats()).toMatchObject({ errors: 1 });
  expect(refusals).toEqual([expect.stringMatching(/^READONLY /)]);
  await direct.replicaof('NO', 'ONE');
  await direct.config('SET', 'requirepass', 'secret');
  const locked = connectRedis(server.url, { commandTimeoutMs: patientMs });
  const lockedCache = new RedisResponseCache({ short: locked, bulk: locked }, maxValueBytes, (words) =>
    refusals.push(words),
  );
  await once(locked, 'error');
  expect(await get(lockedCache, 'k')).toBeNull();
  locked.disconnect();
});

test('a database that the server lacks is told of, and no other is used in its place', async () => {
  await open(patientMs);
  const messages: string[] = [];
  const lost = connectRedis(`${server.url}/99`, { onDown: (text) => messages.push(text) });
  const lostCache = new RedisResponseCache({ short: lost, bulk: lost }, maxValueBytes, () => undefined);
  await once(lost, 'reconnecting');
  expect(await set(lostCache, 'k', value, 60)).toBe(false);
  await once(lost, 'reconnecting');
  lost.disconnect();
  expect(messages).toEqual([expect.stringContaining('DB index is out of range')]);
  expect(await direct.dbsize()).toBe(0);
});

test('reports no credentials', async () => {
  await open(patientMs);
  await server.kill();
  const port = new URL(server.url).port;
  const messages: string[] = [];
  const lost = connectRedis(`redis://:topsecret@127.0.0.1:${port}`, {
    onDown: (text) => messages.push(text),
  });
  await once(lost, 'reconnecting');
  lost.disconnect();
  expect(messages.join()).toContain('ECONNREFUSED');
  expect(messages.join()).not.toContain('topsecret');
});
