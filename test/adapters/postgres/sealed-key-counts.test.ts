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

test('keys are counted by the master key that sealed them', async () => {
  expect(await countSealedKeys(pool)).toEqual(new Map());
  await addKeys(oldKey);
  await addKeys(newKey, oldKey);
  await addKeys(newKey, oldKey);
  expect(await countSealedKeys(pool)).toEqual(
    new Map([
      ['old', 2],
      ['new', 4],
    ]),
  );
  await reseal(pool, createSealer([newKey, oldKey]));
  expect(await countSealedKeys(pool)).toEqual(new Map([['new', 6]]));
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
    return countSealedKeys(pool);
  };
  const read = watchSealedKeys({ count, opened, monotonicMs: () => nowMs });
  expect(read()).toBeNull();
  schemaIsThere();
  await eventually(async () => read() ?? undefined);
  await addKeys(oldKey);
  nowMs = 59_999;
  expect(read()).toEqual(new Map());
  expect(counted).toBe(1);
  nowMs = 60_000;
  read();
  expect(await eventually(async () => (read()?.size === 1 ? read() : undefined))).toEqual(
    new Map([['old', 2]]),
  );
  expect(counted).toBe(2);
  away = true;
  nowMs = 120_000;
  expect(read()).toEqual(new Map([['old', 2]]));
  expect(counted).toBe(3);
  expect(await eventually(async () => read() ?? undefined)).toEqual(new Map([['old', 2]]));
});
