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
const maxValueBytes = 1000;
/** Where slowness is not what is tested, a busy machine must not look like a sick server. */
const patientMs = 30_000;
const value = Buffer.from([0, 1, 2, 255, 254]);

let server: RedisProcess;
let direct: Redis;
let redis: RedisConnection;
let cache: RedisResponseCache;
let nowMs: number;
const downs: string[] = [];
const refusals: string[] = [];

async function open(timeoutMs: number): Promise<void> {
  server = await startRedis();
  direct = new Redis(server.url);
  direct.on('error', () => undefined);
  redis = connectRedis(server.url, { commandTimeoutMs: timeoutMs, onDown: (message) => downs.push(message) });
  nowMs = 0;
  cache = new RedisResponseCache(
    redis,
    maxValueBytes,
    (words) => refusals.push(words),
    () => nowMs,
  );
  await once(redis, 'ready');
}

beforeEach(() => {
  downs.length = 0;
  refusals.length = 0;
});

afterEach(async () => {
  redis.disconnect();
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
    await cache.set('k', value, 60);
    expect(await cache.get('k')).toEqual(value);
    expect(await direct.ttl('gw:answer:k')).toBeGreaterThan(55);
    expect(cache.stats()).toEqual({ errors: 0, up: true });
  });

  test('forgets what has expired', async () => {
    await cache.set('k', value, 60);
    await direct.pexpire('gw:answer:k', 0);
    expect(await cache.get('k')).toBeNull();
  });

  test('knows nothing under another key', async () => {
    await cache.set('k', value, 60);
    expect(await cache.get('K')).toBeNull();
    expect(cache.stats()).toMatchObject({ errors: 0 });
  });

  test('keeps a value of exactly the limit and refuses a longer one', async () => {
    await cache.set('fits', Buffer.alloc(maxValueBytes, 7), 60);
    await cache.set('too long', Buffer.alloc(maxValueBytes + 1, 7), 60);
    expect((await cache.get('fits'))?.length).toBe(maxValueBytes);
    expect(await direct.exists('gw:answer:too long')).toBe(0);
  });

  test('keeps an empty value', async () => {
    await cache.set('k', Buffer.alloc(0), 60);
    expect(await cache.get('k')).toEqual(Buffer.alloc(0));
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
    await write('gw:answer:k');
    const { result, tookMs } = await timed(cache.get('k'));
    expect(result).toBeNull();
    expectInTime(tookMs, slowMs);
    // The same connection: answered after the removal.
    expect(await redis.exists('gw:answer:k')).toBe(0);
    expect(cache.stats()).toMatchObject({ errors: 1 });
    await cache.set('k', value, 60);
    expect(await cache.get('k')).toEqual(value);
  });
});

describe('a server that hangs', () => {
  beforeEach(() => open(commandTimeoutMs));
  afterEach(() => server.continueSignal());

  test('is a miss within the limit, and costs nothing once the breaker is open', async () => {
    await cache.set('k', value, 60);
    server.stopSignal();
    for (let n = 0; n < 5; n += 1) {
      const { result, tookMs } = await timed(cache.get('k'));
      expect(result).toBeNull();
      expectInTime(tookMs, slowMs);
    }
    expect(cache.stats()).toMatchObject({ errors: 5 });
    const { result, tookMs } = await timed(Promise.all(Array.from({ length: 100 }, () => cache.get('k'))));
    expect(result).toEqual(Array(100).fill(null));
    expectInTime(tookMs, 100 * openMs);
    expect(cache.stats().errors).toBe(5);
    await expect(timed(cache.set('k', value, 60))).resolves.toMatchObject({ result: false });
  });

  test('is asked again by one caller at a time, and used again when it answers', async () => {
    await cache.set('k', value, 60);
    server.stopSignal();
    for (let n = 0; n < 5; n += 1) await cache.get('k');
    nowMs += 1000;
    await Promise.all(Array.from({ length: 10 }, () => cache.get('k')));
    expect(cache.stats()).toMatchObject({ errors: 6 });

    server.continueSignal();
    const deadlineMs = performance.now() + recoveredWithinMs;
    let hit: Buffer | null = null;
    while (hit === null && performance.now() < deadlineMs) {
      nowMs += 1000;
      hit = await cache.get('k');
      if (redis.status !== 'ready') await once(redis, 'ready');
    }
    expect(hit).toEqual(value);
  });
});

test('a server that dies and comes back: misses at once, one report, then hits again', async () => {
  await open(patientMs);
  await cache.set('k', value, 60);
  const closed = once(redis, 'close');
  await server.kill();
  await closed;
  const { result, tookMs } = await timed(Promise.all(Array.from({ length: 100 }, () => cache.get('k'))));
  expect(result).toEqual(Array(100).fill(null));
  expectInTime(tookMs, 100 * openMs);
  expect(cache.stats().up).toBe(false);

  const ready = once(redis, 'ready');
  await server.start();
  await ready;
  await cache.set('k', value, 60);
  expect(await cache.get('k')).toEqual(value);
  expect(downs).toHaveLength(1);
});

test('a server that is not there at the start is a miss, and used when it comes', async () => {
  await open(patientMs);
  await server.kill();
  const late = connectRedis(server.url, { commandTimeoutMs: patientMs });
  const lateCache = new RedisResponseCache(late, maxValueBytes, () => undefined);
  const { result, tookMs } = await timed(lateCache.get('k'));
  expect(result).toBeNull();
  expectInTime(tookMs, 10 * openMs);
  const ready = once(late, 'ready');
  await server.start();
  await ready;
  await lateCache.set('k', value, 60);
  expect(await lateCache.get('k')).toEqual(value);
  late.disconnect();
});

test('a full server takes no more, still answers, and does not open the breaker', async () => {
  await open(patientMs);
  await cache.set('kept', value, 60);
  await direct.config('SET', 'maxmemory-policy', 'noeviction');
  await direct.config('SET', 'maxmemory', '1');
  for (let n = 0; n < 10; n += 1) expect(await cache.set(`k${n}`, value, 60)).toBe(false);
  expect(cache.stats()).toMatchObject({ errors: 10, up: true });
  expect(refusals).toEqual(Array(10).fill(expect.stringMatching(/^OOM /)));
  expect(await cache.get('kept')).toEqual(value);
});

test('a read-only replica and a server that wants a password are misses', async () => {
  await open(patientMs);
  await direct.replicaof('127.0.0.1', '1');
  await cache.set('k', value, 60);
  expect(cache.stats()).toMatchObject({ errors: 1 });
  expect(refusals).toEqual([expect.stringMatching(/^READONLY /)]);
  await direct.replicaof('NO', 'ONE');
  await direct.config('SET', 'requirepass', 'secret');
  const locked = connectRedis(server.url, { commandTimeoutMs: patientMs });
  const lockedCache = new RedisResponseCache(locked, maxValueBytes, (words) => refusals.push(words));
  await once(locked, 'error');
  expect(await lockedCache.get('k')).toBeNull();
  locked.disconnect();
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
