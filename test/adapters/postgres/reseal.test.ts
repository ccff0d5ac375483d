import { randomBytes } from 'node:crypto';
import { aroundEach, beforeEach, describe, expect, test } from 'vitest';
import { readAccount } from '../../../src/adapters/postgres/account-query.ts';
import { reseal } from '../../../src/adapters/postgres/reseal.ts';
import { createSealer } from '../../../src/adapters/system/sealer.ts';
import { hashServiceKey } from '../../../src/core/account/service-key.ts';
import type { HeldKey } from '../../../src/core/candidate.ts';
import { Secret } from '../../../src/core/secret/secret.ts';
import { sealedByFirstVersion } from '../../harness/gateway/sealed-v1.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { newUser, storeKey } from './stored.ts';

const database = useDatabase(aroundEach);
const pool = usePool(database, 4, aroundEach);
let keyHash: string;
const oldKey = { id: 'old', key: randomBytes(32) };
const newKey = { id: 'new', key: randomBytes(32) };
const before = createSealer([oldKey]);
const during = createSealer([newKey, oldKey]);
const after = createSealer([newKey]);
const keyCount = 100;

beforeEach(async () => {
  const user = await newUser(pool);
  keyHash = hashServiceKey(user.apiKey);
  for (let index = 0; index < keyCount; index += 1) {
    await storeKey(pool, before, user.userId, {
      provider: 'self_hosted',
      apiKey: new Secret(`secret-${index}`),
      baseUrl: 'https://models.example',
      declaredRegion: 'in',
      label: null,
    });
  }
});

async function secrets(sealer: typeof before): Promise<string[]> {
  const account = await readAccount(pool, keyHash, 0);
  return (account?.keys ?? []).map((key) => sealer.open(key)?.reveal() ?? 'does not open');
}

const expected = Array.from({ length: keyCount }, (_, index) => `secret-${index}`);

test('every row moves to the first key and opens without the old one', async () => {
  expect(await reseal(pool, during)).toEqual({ moved: keyCount, failed: [] });
  expect(await secrets(after)).toEqual(expected);
  expect(await reseal(pool, during)).toEqual({ moved: 0, failed: [] });
});

test('whoever waits hears of each batch how far it is, of a key that does not open too', async () => {
  const user = await newUser(pool);
  const stored = {
    apiKey: new Secret('one more'),
    baseUrl: 'https://models.example',
    declaredRegion: 'in',
    label: null,
  };
  for (let index = 0; index < keyCount; index += 1)
    await storeKey(pool, before, user.userId, { provider: 'self_hosted', ...stored });
  await pool.query(
    `UPDATE provider_keys SET ciphertext = '\\x00' WHERE id = (SELECT id FROM provider_keys LIMIT 1)`,
  );
  const heard: [number, number][] = [];
  await reseal(pool, during, (more, share) => heard.push([more, share]));
  expect(heard).toEqual([
    [100, 0.5],
    [100, 1],
  ]);
});

test('stopped anywhere, every row opens, and the next run completes it', async () => {
  for (const rows of [0, 1, 7, 40]) {
    let left = rows;
    const stopped: typeof during = {
      ...during,
      seal: (...given) => {
        left -= 1;
        if (left < 0) throw new Error('stopped');
        return during.seal(...given);
      },
    };
    await expect(reseal(pool, stopped)).rejects.toThrow('stopped');
    expect(await secrets(during)).toEqual(expected);
  }
  await reseal(pool, during);
  expect(await secrets(after)).toEqual(expected);
});

test('two runs at once move each row once', async () => {
  const [one, other] = await Promise.all([reseal(pool, during), reseal(pool, during)]);
  expect(one.moved + other.moved).toBe(keyCount);
  expect(await secrets(after)).toEqual(expected);
});

test('a row that does not open hurts only itself and is named', async () => {
  const { rows } = await pool.query<{ id: string }>(
    `UPDATE provider_keys SET ciphertext = '\\x00' WHERE id = (SELECT id FROM provider_keys LIMIT 1) RETURNING id`,
  );
  expect(await reseal(pool, during)).toEqual({ moved: keyCount - 1, failed: [rows[0]?.id] });
});

describe('rows that an older release sealed', () => {
  /** Every other row, so that both versions lie side by side. */
  async function sealHalfAsBefore(): Promise<void> {
    const { keys = [] } = (await readAccount(pool, keyHash, 0)) ?? {};
    for (const [index, key] of keys.entries()) {
      if (index % 2 === 0) continue;
      const binding = { recordId: key.id, userId: key.userId, provider: key.provider };
      const { nonce, ciphertext } = sealedByFirstVersion(oldKey.key, `secret-${index}`, binding);
      await pool.query(
        'UPDATE provider_keys SET seal_version = 1, nonce = $2, ciphertext = $3 WHERE id = $1',
        [key.id, nonce, ciphertext],
      );
    }
  }

  test.each([
    ['the same key', before, keyCount / 2],
    ['a newer key', during, keyCount],
  ])('move to the newest seal under %s', async (_name, sealer, moved) => {
    await sealHalfAsBefore();
    expect(await secrets(during)).toEqual(expected);
    expect(await reseal(pool, sealer)).toEqual({ moved, failed: [] });
    expect(await secrets(sealer)).toEqual(expected);
    const { rows } = await pool.query('SELECT DISTINCT seal_version FROM provider_keys');
    expect(rows).toEqual([{ seal_version: 2 }]);
    expect(await reseal(pool, sealer)).toEqual({ moved: 0, failed: [] });
  });

  test('are bound to their address and region from then on', async () => {
    await sealHalfAsBefore();
    await reseal(pool, before);
    for (const edit of [`base_url = 'https://thief.example'`, `declared_region = 'us'`]) {
      const { rows } = await pool.query<{ id: string }>(
        `UPDATE provider_keys SET ${edit}
         WHERE id = (SELECT id FROM provider_keys WHERE base_url = 'https://models.example'
           AND declared_region = 'in' LIMIT 1) RETURNING id`,
      );
      const { keys = [] } = (await readAccount(pool, keyHash, 0)) ?? {};
      const edited = keys.find(({ id }) => id === rows[0]?.id);
      expect(before.open(edited as HeldKey)).toBeNull();
    }
  });
});

test('a row that was edited after it was sealed is named and not sealed anew', async () => {
  const { rows } = await pool.query<{ id: string }>(
    `UPDATE provider_keys SET base_url = 'https://thief.example'
     WHERE id = (SELECT id FROM provider_keys LIMIT 1) RETURNING id`,
  );
  expect(await reseal(pool, during)).toEqual({ moved: keyCount - 1, failed: [rows[0]?.id] });
});
