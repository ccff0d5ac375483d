import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { maxKeyBytesPerUser, maxUserServerKeys } from '../../core/account/account-limits.ts';
import type { NewProviderKey } from '../../core/account/new-provider-key.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import { isUserServer } from '../../core/provider-name.ts';
import type { Sealer } from '../system/sealer.ts';
import { inTransaction, isUuid, withDatabase } from './pool.ts';
import { microsOf } from './sql-micros.ts';
import type { AskedWith } from './user-lock.ts';
import { lockUser } from './user-lock.ts';

/** Tells every replica, with the user's id as payload, that the user's provider keys changed. */
export const keyChangesChannel = 'gw_key_changes';

/** A stored key without its secret. */
export interface ProviderKeyRow {
  readonly id: string;
  readonly provider: ProviderName;
  /** Both of users' servers only. */
  readonly declaredRegion: string | null;
  readonly baseUrl: string | null;
  readonly label: string | null;
  readonly createdAtMicros: number;
}

/** Why there is no key: it may not stand beside those that the user has, or nobody may ask for it any more. */
export type KeyRefusal =
  /** The user, or the right to ask, is gone since the request was let in. */
  | { readonly kind: 'not-asked' }
  /** Of each vendor there is one key. */
  | { readonly kind: 'taken' }
  | { readonly kind: 'too-many-keys'; readonly most: number }
  | { readonly kind: 'too-many-bytes'; readonly most: number };

export type AddedKey = { readonly kind: 'added'; readonly row: ProviderKeyRow } | KeyRefusal;

interface Row {
  readonly id: string;
  readonly provider: ProviderName;
  readonly declared_region: string | null;
  readonly base_url: string | null;
  readonly label: string | null;
  readonly created_at_micros: string;
}

const columns = `id, provider, declared_region, base_url, label,
  ${microsOf('created_at')} AS created_at_micros`;

function fromRow(row: Row): ProviderKeyRow {
  return {
    id: row.id,
    provider: row.provider,
    declaredRegion: row.declared_region,
    baseUrl: row.base_url,
    label: row.label,
    createdAtMicros: Number(row.created_at_micros),
  };
}

interface Held {
  /** Keys of the same provider. */
  readonly keys: number;
  readonly bytes: number;
}

/** Why the user may not have this key, of `bytes`, beside the others; null when it is within the limits. */
async function refusalOf(
  client: pg.PoolClient,
  userId: string,
  provider: ProviderName,
  bytes: number,
): Promise<KeyRefusal | null> {
  const { rows } = await client.query<Held>(
    `SELECT count(*) FILTER (WHERE provider = $2)::integer AS keys,
       coalesce(sum(octet_length(ciphertext) + octet_length(concat(base_url, declared_region, label))), 0)::integer AS bytes
     FROM provider_keys WHERE user_id = $1`,
    [userId, provider],
  );
  const held = rows[0] as Held;
  if (!isUserServer(provider) && held.keys > 0) return { kind: 'taken' };
  if (held.keys >= maxUserServerKeys) return { kind: 'too-many-keys', most: maxUserServerKeys };
  return held.bytes + bytes > maxKeyBytesPerUser
    ? { kind: 'too-many-bytes', most: maxKeyBytesPerUser }
    : null;
}

async function insertKey(
  client: pg.PoolClient,
  sealer: Sealer,
  userId: string,
  key: NewProviderKey,
  askedWith: AskedWith,
): Promise<AddedKey> {
  // The lock makes the count exact when one user registers many keys at once.
  if (!(await lockUser(client, userId, askedWith))) return { kind: 'not-asked' };
  const id = randomUUID();
  const { provider, declaredRegion, baseUrl } = key;
  const binding = { id, userId, provider, declaredRegion, baseUrl };
  const sealed = sealer.seal(key.apiKey.reveal(), binding);
  const texts = Buffer.byteLength(`${baseUrl ?? ''}${declaredRegion ?? ''}${key.label ?? ''}`);
  const refusal = await refusalOf(client, userId, provider, sealed.ciphertext.length + texts);
  if (refusal !== null) return refusal;
  // The predicate is that of the unique index of vendors' keys, word for word.
  const { rows } = await client.query<Row>(
    `INSERT INTO provider_keys
       (id, user_id, provider, declared_region, base_url, label, seal_version, master_key_id, nonce, ciphertext)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT (user_id, provider) WHERE provider <> 'self_hosted' DO NOTHING
     RETURNING ${columns}`,
    [
      id,
      userId,
      provider,
      declaredRegion,
      baseUrl,
      key.label,
      sealed.version,
      sealed.masterKeyId,
      sealed.nonce,
      sealed.ciphertext,
    ],
  );
  const row = rows[0];
  if (row === undefined) return { kind: 'taken' };
  await client.query('SELECT pg_notify($1, $2)', [keyChangesChannel, userId]);
  return { kind: 'added', row: fromRow(row) };
}

/**
 * Seals and stores a provider key (SPEC 4.2) and notifies every replica; refuses a second key of one vendor,
 * and what goes beyond `maxUserServerKeys` or `maxKeyBytesPerUser`. The fields were validated by the caller.
 * Throws StoreAway.
 */
export function addProviderKey(
  pool: pg.Pool,
  sealer: Sealer,
  userId: string,
  key: NewProviderKey,
  askedWith: AskedWith,
): Promise<AddedKey> {
  return withDatabase(() =>
    inTransaction(pool, (client) => insertKey(client, sealer, userId, key, askedWith)),
  );
}

/** The caller's keys, oldest first (SPEC 4.3). Throws StoreAway. */
export async function listProviderKeys(pool: pg.Pool, userId: string): Promise<ProviderKeyRow[]> {
  const { rows } = await withDatabase(() =>
    pool.query<Row>(`SELECT ${columns} FROM provider_keys WHERE user_id = $1 ORDER BY created_at, id`, [
      userId,
    ]),
  );
  return rows.map(fromRow);
}

/**
 * Deletes the caller's key and notifies every replica. The key's provider; null where the caller has no such key.
 * Throws StoreAway.
 */
export async function deleteProviderKey(
  pool: pg.Pool,
  userId: string,
  keyId: string,
): Promise<ProviderName | null> {
  if (!isUuid(keyId)) return null;
  const { rows } = await withDatabase(() =>
    pool.query<{ provider: ProviderName }>(
      `WITH gone AS (DELETE FROM provider_keys WHERE id = $1 AND user_id = $2 RETURNING user_id, provider)
       SELECT provider, pg_notify($3, user_id::text) FROM gone`,
      [keyId, userId, keyChangesChannel],
    ),
  );
  return rows[0]?.provider ?? null;
}
