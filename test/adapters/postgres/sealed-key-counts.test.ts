import { randomBytes } from 'node:crypto';
import { aroundEach, expect, test } from 'vitest';
import { reseal } from '../../../src/adapters/postgres/reseal.ts';
import { countSealedKeys, watchSealedKeys } from '../../../src/adapters/postgres/sealed-key-counts.ts';
import { createSealer } from '../../../src/adapters/system/sealer.ts';
import { Secret } from '../../../src/core/secret/secret.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { newUser, storeKey } from './stored.ts';

const oldKey = { id: 'old', key: randomBytes(32) };
const newKey = { id: 'new', key: randomBytes(32) };

const database = useDatabase(aroundEach);
const pool = usePool(database, 2, aroundEach);

/** Registers a user with one key for each of the providers, sealed by the first of `keys`. */
async function addKeys(...keys: readonly (typeof oldKey)[]): Promise<void> {
  const { userId } = await newUser(pool);
  const sealer = createSealer(keys);
  for (const provider of ['openai', 'sarvam'] as const) {
    const key = { provider, apiKey: new Secret('x'), baseUrl: null, declaredRegion: null, label: null };
    await storeKey(pool, sealer, userId, key);
  }
}

const both = createSealer([newKey, oldKey]);
const countOf = async (sealer = both) => {
  const { byId, unopened } = await countSealedKeys(pool, sealer);
  return { ...Object.fromEntries(byId), unopened };
};

test('keys are counted by the master key that sealed them', async () => {
  expect(await countOf()).toEqual({ unopened: 0 });
  await addKeys(oldKey);
  await addKeys(newKey, oldKey);
  await addKeys(newKey, oldKey);
  expect(await countOf()).toEqual({ old: 2, new: 4, unopened: 0 });
  await reseal(pool, both);
  expect(await countOf()).toEqual({ new: 6, unopened: 0 });
});

test('keys are unopened whose master key is not there, or has other bytes under its id', async () => {
  await addKeys(oldKey);
  await addKeys(newKey);
  expect(await countOf(createSealer([newKey]))).toEqual({ new: 2, unopened: 2 });
  const replaced = createSealer([{ id: 'new', key: randomBytes(32) }, oldKey]);
  expect(await countOf(replaced)).toEqual({ old: 2, unopened: 2 });
  expect((await reseal(pool, replaced)).failed).toHaveLength(2);
});

test('one key that was tampered with is not taken for a master key that is missing', async () => {
  await addKeys(newKey);
  await pool.query(
    "UPDATE provider_keys SET nonce = decode(repeat('00', 12), 'hex') WHERE provider = 'openai'",
  );
  expect(await countOf()).toEqual({ new: 2, unopened: 0 });
});

test('the count is there once the schema is, renewed a minute later, and kept while Postgres is away', async () => {
  let nowMs = 0;
  let schemaIsThere = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    schemaIsThere = resolve;
  });
  let counted = 0;
  let away = false;
  const count = async () => {
    counted += 1;
    if (away) throw new Error('away');
    return countSealedKeys(pool, createSealer([newKey]));
  };
  const told: number[] = [];
  const read = watchSealedKeys({
    count,
    onUnopened: (keys) => told.push(keys),
    opened,
    monotonicMs: () => nowMs,
  });
  const nothing = { byId: new Map(), unopened: 0 };
  const two = { byId: new Map(), unopened: 2 };
  expect(read()).toBeNull();
  schemaIsThere();
  await eventually(async () => read() ?? undefined);
  await addKeys(oldKey);
  nowMs = 59_999;
  expect(read()).toEqual(nothing);
  expect(counted).toBe(1);
  nowMs = 60_000;
  read();
  expect(await eventually(async () => (read()?.unopened === 2 ? read() : undefined))).toEqual(two);
  expect(counted).toBe(2);
  nowMs = 120_000;
  read();
  expect(counted).toBe(3);
  await eventually(async () => (told.length > 0 ? true : undefined));
  away = true;
  nowMs = 180_000;
  expect(read()).toEqual(two);
  expect(counted).toBe(4);
  expect(await eventually(async () => read() ?? undefined)).toEqual(two);
  expect(told).toEqual([2]);
});
