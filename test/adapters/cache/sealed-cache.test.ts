import { randomBytes } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { MemoryResponseCache } from '../../../src/adapters/cache/memory-cache.ts';
import { SealedResponseCache } from '../../../src/adapters/cache/sealed-cache.ts';
import { createSealer } from '../../../src/adapters/system/sealer.ts';
import { ownedBy } from './owned-by.ts';

const value = Buffer.from('the answer to a private question');
const key = randomBytes(32);
let store: MemoryResponseCache;

function sealedBy(id: string, masterKey: Buffer): SealedResponseCache {
  const sealer = createSealer([{ id, key: masterKey }]);
  return new SealedResponseCache(
    store,
    (plain, aad) => sealer.sealValue(plain, aad),
    (sealed, aad) => sealer.openValue(sealed, aad),
  );
}

beforeEach(() => {
  store = new MemoryResponseCache(100_000, 10_000);
});

test('gives back what was set, and the store never sees it', async () => {
  const cache = sealedBy('a', key);
  await cache.set('k', value, 60, ownedBy('ann'));
  expect(await cache.get('k', 'ann')).toEqual(value);
  expect((await store.get('k'))?.includes('private question')).toBe(false);
});

test('a miss of the store is a miss', async () => {
  expect(await sealedBy('a', key).get('k', 'ann')).toBeNull();
});

test('a value that was moved to another key is a miss', async () => {
  const cache = sealedBy('a', key);
  await cache.set('user-1', value, 60, ownedBy('ann'));
  await store.set('user-2', (await store.get('user-1')) as Buffer, 60, ownedBy('ann'));
  expect(await cache.get('user-2', 'ann')).toBeNull();
});

test('a value with any byte changed, or cut at any place, is a miss', async () => {
  const cache = sealedBy('a', key);
  await cache.set('k', value, 60, ownedBy('ann'));
  const stored = (await store.get('k')) as Buffer;
  for (let at = 0; at < stored.length; at += 1) {
    const changed = Buffer.from(stored);
    changed[at] = (changed[at] ?? 0) ^ 1;
    await store.set('changed', changed, 60, ownedBy('ann'));
    await store.set('k', changed, 60, ownedBy('ann'));
    expect(await cache.get('k', 'ann')).toBeNull();
    await store.set('k', stored.subarray(0, at), 60, ownedBy('ann'));
    expect(await cache.get('k', 'ann')).toBeNull();
  }
});

test('what the store says again is opened once, what it says anew each time', async () => {
  const sealer = createSealer([{ id: 'a', key }]);
  const opened: string[] = [];
  const cache = new SealedResponseCache(store, sealer.sealValue, (sealed, aad) => {
    opened.push(aad);
    return sealer.openValue(sealed, aad);
  });
  await cache.set('k', value, 60, ownedBy('ann'));
  for (let n = 0; n < 3; n += 1) expect(await cache.get('k', 'ann')).toEqual(value);
  expect(opened).toEqual(['k']);
  const newer = Buffer.from('another answer');
  await cache.set('k', newer, 60, ownedBy('ann'));
  expect(await cache.get('k', 'ann')).toEqual(newer);
  expect(opened).toEqual(['k', 'k']);
  await store.set('k', Buffer.of(1, 2, 3), 60, ownedBy('ann'));
  expect(await cache.get('k', 'ann')).toBeNull();
  await cache.set('k', value, 60, ownedBy('ann'));
  expect(await cache.get('k', 'ann')).toEqual(value);
});

test('a value that ended in the store is a miss, though it was opened before', async () => {
  let nowMs = 1000;
  store = new MemoryResponseCache(100_000, 10_000, () => nowMs);
  const cache = sealedBy('a', key);
  await cache.set('k', value, 60, ownedBy('ann'));
  expect(await cache.get('k', 'ann')).toEqual(value);
  nowMs += 60_001;
  expect(await cache.get('k', 'ann')).toBeNull();
});

test('a value sealed by a master key that is gone is a miss', async () => {
  await sealedBy('a', key).set('k', value, 60, ownedBy('ann'));
  expect(await sealedBy('b', randomBytes(32)).get('k', 'ann')).toBeNull();
  expect(await sealedBy('a', randomBytes(32)).get('k', 'ann')).toBeNull();
});
