import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { afterEach, aroundEach, beforeEach, expect, test } from 'vitest';
import { AccountChanges } from '../../../src/adapters/postgres/account-changes.ts';
import type { LoadedAccount } from '../../../src/adapters/postgres/account-query.ts';
import { readAccount } from '../../../src/adapters/postgres/account-query.ts';
import type { AccountsOptions, PostgresAccounts } from '../../../src/adapters/postgres/accounts.ts';
import { createAccounts } from '../../../src/adapters/postgres/accounts.ts';
import { deleteUser } from '../../../src/adapters/postgres/operators.ts';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import { deleteProviderKey } from '../../../src/adapters/postgres/provider-keys.ts';
import {
  addServiceKey,
  deleteServiceKey,
  listServiceKeys,
} from '../../../src/adapters/postgres/service-keys.ts';
import { createSealer } from '../../../src/adapters/system/sealer.ts';
import { maxKeyBytesPerUser, maxUserServerKeys } from '../../../src/core/account/account-limits.ts';
import { hashServiceKey } from '../../../src/core/account/service-key.ts';
import type { HeldKey } from '../../../src/core/candidate.ts';
import { Secret } from '../../../src/core/secret/secret.ts';
import { expectInTime } from '../../harness/measure/fault-bounds.ts';
import { useDatabase, usePool } from '../../harness/servers/use-started.ts';
import { callerOf } from '../../http/caller.ts';
import { newUser, storeKey } from './stored.ts';

const database = useDatabase(aroundEach);
const pool = usePool(database, 5, aroundEach);
let userId: string;
let keyHash: string;
let queries: number;
const replicas: PostgresAccounts[] = [];
const sealer = createSealer([{ id: 'k', key: randomBytes(32) }]);

beforeEach(async () => {
  const user = await newUser(pool);
  userId = user.userId;
  keyHash = hashServiceKey(user.apiKey);
  queries = 0;
});

afterEach(async () => {
  await Promise.all(replicas.splice(0).map((replica) => replica.close()));
});

/** Counts the queries, and holds each one's answer back until `release` when there is one. */
function watchedPool(release?: Promise<void>): pg.Pool {
  const pass = (args: unknown[]) => (pool.query as (...all: unknown[]) => Promise<unknown>).apply(pool, args);
  const query = async (...args: unknown[]): Promise<unknown> => {
    // What proves that the listener hears is no question of anybody.
    if (String(args[0]).includes('pg_notify')) return pass(args);
    // Uses of keys are written whenever there is time.
    if (!String(args[0]).startsWith('UPDATE')) queries += 1;
    const result = await pass(args);
    await release;
    return result;
  };
  return { query, options: pool.options } as unknown as pg.Pool;
}

const loaded = (id: string, keys: readonly HeldKey[]): LoadedAccount => ({
  ...callerOf(id, keys),
  expiresAtMs: null,
  usedThisHour: true,
});

async function replica(
  change: Partial<Pick<AccountsOptions, 'pool' | 'clock' | 'read'>> = {},
): Promise<PostgresAccounts> {
  const accounts = createAccounts({
    pool: watchedPool(),
    directUrl: database.url,
    clock: { monotonicMs: () => performance.now() },
    ...change,
  });
  replicas.push(accounts);
  await expect.poll(() => accounts.listening(), { interval: 10 }).toBe(true);
  return accounts;
}

async function addKey(provider: 'openai' | 'anthropic'): Promise<string> {
  const key = { provider, apiKey: new Secret('s'), baseUrl: null, declaredRegion: null, label: null };
  return (await storeKey(pool, sealer, userId, key)).id;
}

async function providers(accounts: PostgresAccounts): Promise<string[]> {
  const account = await accounts.find(keyHash);
  return (account?.keys ?? []).map((key) => key.provider);
}

/** Milliseconds until the replica sees just these providers. */
async function untilSeen(accounts: PostgresAccounts, expected: readonly string[]): Promise<number> {
  const startedAtMs = performance.now();
  await expect.poll(() => providers(accounts), { interval: 5 }).toEqual(expected);
  return performance.now() - startedAtMs;
}

test('the user and all keys come from one query, and then from memory without a turn', async () => {
  await addKey('openai');
  await addKey('anthropic');
  const accounts = await replica();
  const account = await accounts.find(keyHash);
  expect(account).toMatchObject({ userId, keys: [{ provider: 'openai' }, { provider: 'anthropic' }] });
  const secrets = account?.keys.map((key) => sealer.open(key)?.reveal());
  expect(secrets).toEqual(['s', 's']);
  expect(accounts.find(keyHash)).toBe(account);
  expect(queries).toBe(1);
});

test('accounts are kept by their bytes, and one that is too large is served without being kept', async () => {
  const keyOf = (bytes: number) =>
    ({ id: 'i', userId, provider: 'self_hosted', sealed: { ciphertext: Buffer.alloc(bytes) } }) as HeldKey;
  const sizes: Record<string, number> = { small: 100, usual: 60_000, large: 200_000, huge: 1_250_000 };
  const accounts = createAccounts({
    pool: watchedPool(),
    directUrl: database.url,
    clock: { monotonicMs: () => 0 },
    read: async (_pool, hash) => {
      const [kind = ''] = hash.split(' ');
      return loaded(hash, [keyOf(sizes[kind] ?? 0)]);
    },
  });
  replicas.push(accounts);
  for (const [kind, bytes] of Object.entries(sizes)) {
    for (let index = 0; index < 600; index += 1) {
      expect((await accounts.find(`${kind} ${index}`))?.userId).toBe(`${kind} ${index}`);
    }
    expect(await accounts.find(`${kind} 599`)).toMatchObject({ userId: `${kind} 599` });
    if (kind === 'small') expect(accounts.size()).toBe(600);
    // The small ones stay, whoever comes.
    else if (kind !== 'huge') expect((accounts.size() - 600) * bytes).toBeLessThan(17 * 1024 * 1024);
  }
  accounts.invalidate('huge 1');
  expect(accounts.size()).toBeGreaterThan(100);
});

test('the largest account that can be registered is kept', async () => {
  const keys = Array.from({ length: maxUserServerKeys + 4 }, (_, index) => {
    const baseUrl = 'x'.repeat(index === 0 ? maxKeyBytesPerUser : 0);
    return { id: 'i', userId, baseUrl, sealed: { ciphertext: Buffer.alloc(0) } } as unknown as HeldKey;
  });
  const accounts = createAccounts({
    pool: watchedPool(),
    directUrl: database.url,
    clock: { monotonicMs: () => 0 },
    read: async () => loaded(userId, keys),
  });
  replicas.push(accounts);
  await accounts.find('largest');
  expect(accounts.size()).toBe(1);
});

test('concurrent loads of one key share a query', async () => {
  const accounts = await replica();
  const found = await Promise.all(Array.from({ length: 100 }, () => accounts.find(keyHash)));
  expect(new Set(found).size).toBe(1);
  expect(queries).toBe(1);
});

test('unknown keys of strangers take half of the pool, and whoever was let in does not wait for them', async () => {
  let letAnswer = () => {};
  const held = new Promise<void>((resolve) => {
    letAnswer = resolve;
  });
  const asked: string[] = [];
  const accounts = createAccounts({
    pool: watchedPool(),
    directUrl: database.url,
    clock: { monotonicMs: () => 0 },
    read: async (_pool, hash) => {
      asked.push(hash);
      if (hash !== 'known') await held;
      return hash === 'known' ? loaded(userId, []) : null;
    },
  });
  replicas.push(accounts);
  const strangers = Array.from({ length: 10 }, (_, at) =>
    accounts.find(`stranger ${at}`, () => '203.0.113.1'),
  );
  expect(asked).toEqual(['stranger 0', 'stranger 1']);
  expect(await accounts.refresh('known')).toMatchObject({ userId });
  accounts.invalidate(userId);
  expect(await accounts.find('known', () => '203.0.113.1'), 'known, if not cached').toMatchObject({ userId });
  letAnswer();
  expect(await Promise.all(strangers)).toEqual(Array(10).fill(null));
});

test('an unknown key is null and is asked for each time', async () => {
  const accounts = await replica();
  const unknown = hashServiceKey('gw_unknown');
  expect(await accounts.find(unknown)).toBeNull();
  expect(await accounts.find(unknown)).toBeNull();
  expect(queries).toBe(2);
  expect(accounts.size()).toBe(0);
});

test('keys added and deleted on one replica are seen on another within a second', async () => {
  const [one, other] = [await replica(), await replica()];
  for (let round = 0; round < 3; round += 1) {
    const id = await addKey('openai');
    one.invalidate(userId);
    expect(await providers(one)).toEqual(['openai']);
    expectInTime(await untilSeen(other, ['openai']), 350);
    await deleteProviderKey(pool, userId, id);
    one.invalidate(userId);
    expect(await providers(one)).toEqual([]);
    expectInTime(await untilSeen(other, []), 350);
  }
});

test('facts read before a change that overtook them are not kept', async () => {
  await addKey('openai');
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const accounts = await replica({ pool: watchedPool(held) });
  const loading = accounts.find(keyHash);
  await expect.poll(() => queries).toBe(1);
  await addKey('anthropic');
  accounts.invalidate(userId);
  release();
  expect((await loading)?.keys).toHaveLength(2);
  expect(await providers(accounts)).toEqual(['openai', 'anthropic']);
});

test('refresh reads past the cache', async () => {
  const accounts = await replica();
  await accounts.find(keyHash);
  await accounts.refresh(keyHash);
  expect(queries).toBe(2);
});

test('a service key that is gone from the database is forgotten with the next read', async () => {
  const accounts = await replica();
  await accounts.find(keyHash);
  await pool.query('DELETE FROM users WHERE id = $1', [userId]);
  expect(await accounts.refresh(keyHash)).toBeNull();
  expect(await accounts.find(keyHash)).toBeNull();
});

test('while changes are received, facts are trusted for a minute and then read again', async () => {
  let skippedMs = 0;
  const accounts = await replica({ clock: { monotonicMs: () => performance.now() + skippedMs } });
  const first = await accounts.find(keyHash);
  skippedMs = 50_000;
  // The jump makes the last ping look old; the next one proves the connection again.
  await expect.poll(() => accounts.listening(), { interval: 5 }).toBe(true);
  expect(accounts.find(keyHash)).toBe(first);
  skippedMs = 61_000;
  await expect.poll(() => accounts.listening(), { interval: 5 }).toBe(true);
  expect(await accounts.find(keyHash)).not.toBe(first);
});

test('without a connection that hears changes, facts are trusted for one second', async () => {
  let skippedMs = 0;
  const accounts = createAccounts({
    pool: watchedPool(),
    directUrl: 'postgres://postgres@127.0.0.1:1/none',
    clock: { monotonicMs: () => performance.now() + skippedMs },
  });
  replicas.push(accounts);
  const first = await accounts.find(keyHash);
  skippedMs = 800;
  expect(accounts.find(keyHash)).toBe(first);
  skippedMs = 1100;
  expect(await accounts.find(keyHash)).not.toBe(first);
  expect(accounts.listening()).toBe(false);
});

test('the connection that hears changes comes back when the server ends it', async () => {
  const accounts = await replica();
  await accounts.find(keyHash);
  for (let round = 0; round < 3; round += 1) {
    const ended = await pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'model-gateway-listen' AND datname = current_database()`,
    );
    expect(ended.rowCount).toBe(1);
    await expect.poll(() => accounts.listening(), { interval: 5 }).toBe(false);
    await expect.poll(() => accounts.listening(), { interval: 5 }).toBe(true);
  }
  const id = await addKey('openai');
  expectInTime(await untilSeen(accounts, ['openai']), 350);
  await deleteProviderKey(pool, userId, id);
  expectInTime(await untilSeen(accounts, []), 350);
});

test('a crowded pool helps one look-up to known facts, and is not taken for a Postgres that is away', async () => {
  let skippedMs = 0;
  const small = createPool(database.url, 1);
  const accounts = await replica({
    pool: small,
    clock: { monotonicMs: () => performance.now() + skippedMs },
  });
  const known = await accounts.find(keyHash);
  const held = await small.connect();
  skippedMs = 61_000;
  await expect.poll(() => accounts.listening(), { interval: 5 }).toBe(true);
  expect(await accounts.find(keyHash)).toBe(known);
  await expect(accounts.find(hashServiceKey('gw_unknown'))).rejects.toMatchObject({ crowded: true });
  held.release();
  expect(await accounts.find(keyHash)).not.toBe(known);
  await small.end();
});

test.each(['service_keys', 'users', 'provider_keys'])(
  'while %s is locked one look-up waits for it, and no other, until it is free',
  async (table) => {
    let skippedMs = 0;
    let reads = 0;
    const hasty = createPool(database.url, 2, { patienceMs: 200 });
    const accounts = await replica({
      pool: hasty,
      clock: { monotonicMs: () => performance.now() + skippedMs },
      read: (...args) => {
        reads += 1;
        return readAccount(...args);
      },
    });
    const known = await accounts.find(keyHash);
    const holder = await pool.connect();
    await holder.query(`SET idle_in_transaction_session_timeout = 0; BEGIN; LOCK TABLE ${table}`);
    skippedMs = 61_000;
    expect(await accounts.find(keyHash)).toBe(known);
    const readsBefore = reads;
    // Those that look for its return.
    await expect.poll(() => reads).toBeGreaterThan(readsBefore + 2);
    expect(accounts.find(keyHash)).toBe(known);
    await holder.query('COMMIT');
    holder.release();
    await expect.poll(() => accounts.find(keyHash)).not.toBe(known);
    await accounts.close();
    await hasty.end();
  },
);

const newKey = (expiresAtMicros: bigint | null = null) =>
  addServiceKey(pool, userId, { label: null, expiresAtMicros }, null).then((added) => {
    if (added.kind !== 'added') throw new Error(added.kind);
    return { id: added.row.id, hash: hashServiceKey(added.apiKey) };
  });

const endings: readonly (readonly [
  name: string,
  end: (accounts: PostgresAccounts, keyId: string) => Promise<unknown>,
])[] = [
  ['was revoked elsewhere', (_accounts, keyId) => deleteServiceKey(pool, userId, keyId)],
  [
    'was revoked here',
    (accounts, keyId) => new AccountChanges(pool, accounts).deleteServiceKey(userId, keyId),
  ],
  ['went with its user elsewhere', () => deleteUser(pool, userId)],
  ['went with its user here', (accounts) => new AccountChanges(pool, accounts).deleteUser(userId)],
];

test.each(endings)(
  'a service key that %s is unknown while Postgres is away, and others are asked for',
  async (_name, end) => {
    const { id, hash } = await newKey();
    let away = false;
    const query = (...args: unknown[]): Promise<unknown> =>
      away
        ? Promise.reject(new Error('connect ECONNREFUSED'))
        : (pool.query as (...all: unknown[]) => Promise<unknown>).apply(pool, args);
    const accounts = await replica({ pool: { query, options: pool.options } as unknown as pg.Pool });
    expect(await accounts.find(hash)).toMatchObject({ userId, serviceKeyId: id });
    await end(accounts, id);
    await expect.poll(() => accounts.size(), { interval: 5 }).toBe(0);
    away = true;
    expect(accounts.find(hash)).toBeNull();
    await expect(Promise.resolve(accounts.find(keyHash))).rejects.toThrow();
  },
);

test('a service key ends at its time, by the clock of Postgres, without being read again', async () => {
  let skippedMs = 0;
  const { hash } = await newKey(BigInt(Date.now() + 30_000) * 1000n);
  const accounts = await replica({ clock: { monotonicMs: () => performance.now() + skippedMs } });
  expect(await accounts.find(hash)).toMatchObject({ userId });
  skippedMs = 31_000;
  await expect.poll(() => accounts.listening(), { interval: 5 }).toBe(true);
  expect(accounts.find(hash)).toBeNull();
  expect(await accounts.find(keyHash)).toMatchObject({ userId });
});

test('the hour of the last use is written once, whatever the number of requests', async () => {
  const accounts = await replica();
  for (let request = 0; request < 3; request += 1) await accounts.find(keyHash);
  await accounts.close();
  const [row] = await listServiceKeys(pool, userId);
  expect((row?.lastUsedAtMicros ?? 0) % 3_600_000_000).toBe(0);
  expect(Date.now() - (row?.lastUsedAtMicros ?? 0) / 1000).toBeLessThan(3_700_000);
  expect(await (await replica()).find(keyHash)).toMatchObject({ usedThisHour: true });
});

test('of two keys that delete each other at once, one stays', async () => {
  const { id } = await newKey();
  const [first] = await listServiceKeys(pool, userId);
  const results = await Promise.all([
    deleteServiceKey(pool, userId, id),
    deleteServiceKey(pool, userId, first?.id ?? ''),
  ]);
  expect(results.sort()).toEqual(['deleted', 'last']);
  expect(await listServiceKeys(pool, userId)).toHaveLength(1);
});
