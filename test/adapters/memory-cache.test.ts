import { expect, test } from 'vitest';
import { MemoryResponseCache } from '../../src/adapters/memory-cache.ts';

const value = Buffer.from('answer');

test('gives back what was set until its time is over', async () => {
  let nowMs = 1000;
  const cache = new MemoryResponseCache(10_000, 1000, () => nowMs);
  await cache.set('k', value, 60);
  nowMs += 59_999;
  expect(await cache.get('k')).toEqual(value);
  expect(await cache.get('other')).toBeNull();
  nowMs += 2;
  expect(await cache.get('k')).toBeNull();
});

test('setting again starts the time again', async () => {
  let nowMs = 1000;
  const cache = new MemoryResponseCache(10_000, 1000, () => nowMs);
  await cache.set('k', value, 60);
  nowMs += 50_000;
  await cache.set('k', Buffer.from('newer'), 60);
  nowMs += 50_000;
  expect((await cache.get('k'))?.toString()).toBe('newer');
});

test('never holds more than its bytes, and drops what was not used for longest', async () => {
  const cache = new MemoryResponseCache(10_000, 2000);
  for (let n = 0; n < 100; n += 1) {
    await cache.set(`k${n}`, Buffer.alloc(1000), 60);
    await cache.get('k0');
    expect(cache.bytes).toBeLessThanOrEqual(10_000);
  }
  expect(await cache.get('k0')).not.toBeNull();
  expect(await cache.get('k99')).not.toBeNull();
  expect(await cache.get('k1')).toBeNull();
});

test('does not keep a value above the limit, nor the old value it was to replace', async () => {
  const cache = new MemoryResponseCache(10_000, 1000);
  await cache.set('k', value, 60);
  await cache.set('k', Buffer.alloc(5000), 60);
  expect(await cache.get('k')).toBeNull();
});

test('keeps nothing when it has no room', async () => {
  const cache = new MemoryResponseCache(0, 1000);
  await cache.set('k', value, 60);
  expect(await cache.get('k')).toBeNull();
  expect(cache.bytes).toBe(0);
});

test('keeps a copy: later writes to the buffer do not change it', async () => {
  const cache = new MemoryResponseCache(10_000, 1000);
  const buffer = Buffer.from('answer');
  await cache.set('k', buffer, 60);
  buffer.fill(0);
  expect((await cache.get('k'))?.toString()).toBe('answer');
});
