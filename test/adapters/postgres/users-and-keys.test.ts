import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { AddedKey } from '../../../src/adapters/postgres/provider-keys.ts';
import {
  addProviderKey,
  deleteProviderKey,
  listProviderKeys,
} from '../../../src/adapters/postgres/provider-keys.ts';
import { addServiceKey } from '../../../src/adapters/postgres/service-keys.ts';
import { registerUser } from '../../../src/adapters/postgres/users.ts';
import { createSealer } from '../../../src/adapters/system/sealer.ts';
import { maxKeyBytesPerUser, maxUserServerKeys } from '../../../src/core/account/account-limits.ts';
import type { NewProviderKey } from '../../../src/core/account/new-provider-key.ts';
import { hashServiceKey } from '../../../src/core/account/service-key.ts';
import { Secret } from '../../../src/core/secret/secret.ts';
import { providerKeyRecord } from '../../../src/http/schemas/provider-key-record.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { newUser, storeKey } from './stored.ts';

/** As many as run at once below: a wait for the pool itself would be a 503, which is not what is tested here. */
const poolSize = 10;

const database = useDatabase();
const pool = usePool(database, poolSize);
const sealer = createSealer([{ id: 'k', key: randomBytes(32) }]);

const openai: NewProviderKey = {
  provider: 'openai',
  apiKey: new Secret('sk-canary-5f1c'),
  baseUrl: null,
  declaredRegion: null,
  label: null,
};
const selfHosted: NewProviderKey = {
  ...openai,
  provider: 'self_hosted',
  baseUrl: 'https://models.example/v1',
  declaredRegion: 'AP-South-1',
};

async function newUserId(): Promise<string> {
  return (await newUser(pool)).userId;
}

/** What `count` calls return, of which as many as the pool has connections run at any time. */
async function crowd<T>(count: number, call: (index: number) => Promise<T>): Promise<T[]> {
  const outcomes: T[] = [];
  let next = 0;
  const callOn = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      outcomes.push(await call(index));
    }
  };
  await Promise.all(Array.from({ length: poolSize }, callOn));
  return outcomes;
}

function kindsOf(outcomes: readonly AddedKey[]): Record<string, number> {
  const kinds: Record<string, number> = {};
  for (const { kind } of outcomes) kinds[kind] = (kinds[kind] ?? 0) + 1;
  return kinds;
}

test('fifty registrations of one address, ten at once, make one user, and nobody of the rest', async () => {
  for (let round = 0; round < 5; round += 1) {
    const name = randomUUID();
    const outcomes = await crowd(50, (index) =>
      registerUser(pool, {
        email: index % 2 === 0 ? `Ann.${name}@Example.com` : `ann.${name}@EXAMPLE.com`,
      }),
    );
    expect(outcomes.filter((user) => user !== null)).toHaveLength(1);
  }
});

test('the address is echoed as given and the service key is stored as its hash only', async () => {
  const email = `Mixed.${randomUUID()}@Example.COM`;
  const user = await newUser(pool, email);
  expect(user.email).toBe(email);
  const { rows } = await pool.query(
    "SELECT user_id, encode(key_hash, 'hex') AS hash FROM service_keys WHERE user_id = $1",
    [user.userId],
  );
  expect(rows).toEqual([{ user_id: user.userId, hash: hashServiceKey(user.apiKey) }]);
});

test('a stored key comes back as a record without its secret', async () => {
  const userId = await newUserId();
  const row = await storeKey(pool, sealer, userId, { ...selfHosted, label: 'lab' });
  const record = providerKeyRecord(row, new Set(['ap-south-1']));
  expect(record).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    provider: 'self_hosted',
    residency: 'india',
    declared_region: 'AP-South-1',
    base_url: 'https://models.example/v1',
    label: 'lab',
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
  });
  expect(providerKeyRecord(row, new Set())).toMatchObject({ residency: 'global' });
  expect(await listProviderKeys(pool, userId)).toEqual([row]);
});

test('no column of the database holds a secret in the clear', async () => {
  const userId = await newUserId();
  await storeKey(pool, sealer, userId, openai);
  const { rows } = await pool.query<{ text: string }>('SELECT k::text AS text FROM provider_keys k');
  const dump = rows.map((row) => row.text).join('\n');
  for (const form of ['utf8', 'hex', 'base64'] as const) {
    expect(dump).not.toContain(Buffer.from('sk-canary-5f1c').toString(form));
  }
});

test('fifty keys of one commercial provider, ten at once, make one key', async () => {
  const userId = await newUserId();
  const outcomes = await crowd(50, () => addProviderKey(pool, sealer, userId, openai, null));
  expect(kindsOf(outcomes)).toEqual({ added: 1, taken: 49 });
  await storeKey(pool, sealer, userId, { ...openai, provider: 'anthropic' });
  expect((await listProviderKeys(pool, userId)).map((row) => row.provider)).toEqual(['openai', 'anthropic']);
});

test('self_hosted keys stop at their limit, under concurrency too', async () => {
  const userId = await newUserId();
  const outcomes = await crowd(maxUserServerKeys + 20, () =>
    addProviderKey(pool, sealer, userId, selfHosted, null),
  );
  expect(kindsOf(outcomes)).toEqual({ added: maxUserServerKeys, 'too-many-keys': 20 });
});

const longest = { apiKey: new Secret('s'.repeat(8192)), label: '\u{1f511}'.repeat(128) };

test('the keys of a user stop at their bytes too, under concurrency, and a deleted one makes room', async () => {
  const userId = await newUserId();
  const long: NewProviderKey = {
    ...selfHosted,
    ...longest,
    baseUrl: `https://models.example/${'p'.repeat(2000)}`,
    declaredRegion: 'r'.repeat(128),
  };
  const outcomes = await crowd(30, () => addProviderKey(pool, sealer, userId, long, null));
  const each = 8192 + 16 + 4 * 128 + 'https://models.example/'.length + 2000 + 128;
  const fitting = Math.floor(maxKeyBytesPerUser / each);
  expect(kindsOf(outcomes)).toEqual({ added: fitting, 'too-many-bytes': 30 - fitting });
  const held = await listProviderKeys(pool, userId);
  expect(held).toHaveLength(fitting);
  const another = { ...openai, ...longest };
  const refused = await addProviderKey(pool, sealer, userId, another, null);
  expect(refused).toEqual({ kind: 'too-many-bytes', most: maxKeyBytesPerUser });
  await deleteProviderKey(pool, userId, held[0]?.id ?? '');
  await storeKey(pool, sealer, userId, another);
  expect(await addProviderKey(pool, sealer, userId, another, null)).toEqual({ kind: 'taken' });
});

test('a deleted key is gone and makes room for another', async () => {
  const userId = await newUserId();
  const row = await storeKey(pool, sealer, userId, openai);
  expect(await deleteProviderKey(pool, userId, row.id)).toBe('openai');
  expect(await listProviderKeys(pool, userId)).toEqual([]);
  await storeKey(pool, sealer, userId, openai);
});

test('missing, foreign and misshapen ids name no key of the caller', async () => {
  const owner = await newUserId();
  const { id } = await storeKey(pool, sealer, owner, openai);
  const stranger = await newUserId();
  const ids = [id, randomUUID(), `{${id}}`, '', 'x'.repeat(10_240), "' OR 1=1", '\0', id.replaceAll('-', '')];
  for (const keyId of ids) {
    expect(await deleteProviderKey(pool, stranger, keyId)).toBeNull();
  }
  expect(await listProviderKeys(pool, owner)).toHaveLength(1);
});

const additions: [
  what: string,
  add: (userId: string, askedWith: string | null) => Promise<{ kind: string }>,
][] = [
  ['a provider key', (userId, askedWith) => addProviderKey(pool, sealer, userId, openai, askedWith)],
  [
    'a service key',
    (userId, askedWith) => addServiceKey(pool, userId, { label: null, expiresAtMicros: null }, askedWith),
  ],
];

test.each(additions)(
  '%s of a user who was deleted meanwhile is not added, and is no bug',
  async (_what, add) => {
    const userId = await newUserId();
    await pool.query('DELETE FROM users WHERE id = $1', [userId]);
    expect(await add(userId, null)).toEqual({ kind: 'not-asked' });
  },
);

/** Of the key that is asked with, while whoever asks waits for the user's lock. */
const meanwhile: [what: string, statement: string][] = [
  ['was revoked', 'DELETE FROM service_keys WHERE user_id = $1'],
  ['has expired', "UPDATE service_keys SET expires_at = now() - interval '1 s' WHERE user_id = $1"],
  ["is a disabled user's", 'UPDATE users SET disabled_at = now() WHERE id = $1'],
  ["is a deleted user's", 'DELETE FROM users WHERE id = $1'],
];

describe.each(additions)('%s', (_what, add) => {
  test.each(meanwhile)('is not added with a key that %s meanwhile', async (_how, statement) => {
    const userId = await newUserId();
    const { rows } = await pool.query<{ id: string }>('SELECT id FROM service_keys WHERE user_id = $1', [
      userId,
    ]);
    const askedWith = rows[0]?.id ?? '';
    const other = await pool.connect();
    await other.query('BEGIN');
    await other.query('SELECT 1 FROM users WHERE id = $1 FOR UPDATE', [userId]);
    const adding = add(userId, askedWith);
    await eventually(async () => {
      const waiting =
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
      return (await other.query(waiting)).rowCount === 1 || undefined;
    });
    await other.query(statement, [userId]);
    await other.query('COMMIT');
    other.release();
    expect(await adding).toEqual({ kind: 'not-asked' });
  });

  test('is added with a key that lives, and with no other', async () => {
    const [userId, stranger] = [await newUserId(), await newUserId()];
    const { rows } = await pool.query<{ id: string; user_id: string }>(
      'SELECT id, user_id FROM service_keys',
    );
    const keyOf = (user: string): string => rows.find((row) => row.user_id === user)?.id ?? '';
    expect(await add(userId, keyOf(stranger))).toEqual({ kind: 'not-asked' });
    expect(await add(userId, keyOf(userId))).toMatchObject({ kind: 'added' });
  });
});
