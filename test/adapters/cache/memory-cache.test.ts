import { expect, test } from 'vitest';
import { MemoryResponseCache } from '../../../src/adapters/cache/memory-cache.ts';
import { ownedBy } from './owned-by.ts';

const value = Buffer.from('answer');

test('gives back what was set until its time is over', async () => {
  let nowMs = 1000;
  const cache = new MemoryResponseCache(10_000, 1000, () => nowMs);
  await cache.set('k', value, 60, ownedBy('ann'));
  nowMs += 59_999;
  expect(await cache.get('k')).toEqual(value);
  expect(await cache.get('other')).toBeNull();
  nowMs += 2;
  expect(await cache.get('k')).toBeNull();
});

test('setting again starts the time again', async () => {
  let nowMs = 1000;
  const cache = new MemoryResponseCache(10_000, 1000, () => nowMs);
  await cache.set('k', value, 60, ownedBy('ann'));
  nowMs += 50_000;
  await cache.set('k', Buffer.from('newer'), 60, ownedBy('ann'));
  nowMs += 50_000;
  expect((await cache.get('k'))?.toString()).toBe('newer');
});

test('never holds more than its bytes, and drops what was not used for longest', async () => {
  const cache = new MemoryResponseCache(10_000, 2000);
  for (let n = 0; n < 100; n += 1) {
    await cache.set(`k${n}`, Buffer.alloc(1000), 60, ownedBy('ann'));
    await cache.get('k0');
    expect(cache.bytes).toBeLessThanOrEqual(10_000);
  }
  expect(await cache.get('k0')).not.toBeNull();
  expect(await cache.get('k99')).not.toBeNull();
  expect(await cache.get('k1')).toBeNull();
});

test('does not keep a value above the limit, nor the old value it was to replace', async () => {
  const cache = new MemoryResponseCache(10_000, 1000);
  await cache.set('k', value, 60, ownedBy('ann'));
  await cache.set('k', Buffer.alloc(5000), 60, ownedBy('ann'));
  expect(await cache.get('k')).toBeNull();
});

test('keeps nothing when it has no room', async () => {
  const cache = new MemoryResponseCache(0, 1000);
  await cache.set('k', value, 60, ownedBy('ann'));
  expect(await cache.get('k')).toBeNull();
  expect(cache.bytes).toBe(0);
});

test('keeps a copy: later writes to the buffer do not change it', async () => {
  const cache = new MemoryResponseCache(10_000, 1000);
  const buffer = Buffer.from('answer');
  await cache.set('k', buffer, 60, ownedBy('ann'));
  buffer.fill(0);
  expect((await cache.get('k'))?.toString()).toBe('answer');
});

async function held(cache: MemoryResponseCache, owner: string, count: number): Promise<number> {
  let found = 0;
  for (let n = 0; n < count; n += 1) if ((await cache.get(`${owner}${n}`)) !== null) found += 1;
  return found;
}

async function store(cache: MemoryResponseCache, owner: string, count: number, bytes: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await cache.set(`${owner}${n}`, Buffer.alloc(bytes), 60, ownedBy(owner));
}

test.each([
  ['many small answers', 1000, 500],
  ['few large answers', 75, 20_000],
])('one user with %s does not push out what others hold below half', async (_name, count, bytes) => {
  const cache = new MemoryResponseCache(100_000, 50_000);
  await store(cache, 'ann', 50, 100);
  await store(cache, 'bob', 20, 100);
  await store(cache, 'eve', count, bytes);
  expect([await held(cache, 'ann', 50), await held(cache, 'bob', 20)]).toEqual([50, 20]);
  expect(await cache.get(`eve${count - 1}`)).not.toBeNull();
});

test('a user alone may hold all of it, and gives way to others down to half', async () => {
  const cache = new MemoryResponseCache(100_000, 50_000);
  await store(cache, 'eve', 200, 1000);
  expect(cache.bytes).toBeGreaterThan(95_000);
  await store(cache, 'ann', 38, 1000);
  expect(await held(cache, 'ann', 38)).toBe(38);
  expect(await held(cache, 'eve', 200)).toBeGreaterThanOrEqual(38);
  expect(cache.bytes).toBeLessThanOrEqual(100_000);
});

test('answers that ended, were replaced or refused leave no share behind', async () => {
  let nowMs = 1000;
  const cache = new MemoryResponseCache(10_000, 20_000, () => nowMs);
  await cache.set('k', Buffer.alloc(4000), 60, ownedBy('ann'));
  await cache.set('k', Buffer.alloc(100), 60, ownedBy('bob'));
  expect(cache.owners).toBe(1);
  await cache.set('k', Buffer.alloc(50_000), 60, ownedBy('bob'));
  expect(cache.owners).toBe(0);
  await cache.set('k', value, 60, ownedBy('ann'));
  nowMs += 61_000;
  expect(await cache.get('k')).toBeNull();
  expect([cache.owners, cache.bytes]).toEqual([0, 0]);
});

test('a small value keeps nothing beside itself alive', async () => {
  const cache = new MemoryResponseCache(10_000, 1000);
  await cache.set('k', value, 60, ownedBy('ann'));
  expect((await cache.get('k'))?.buffer.byteLength).toBe(value.length);
});
