import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { maxServiceKeysPerUser } from '../../core/account/account-limits.ts';
import { hashServiceKey, newServiceKey } from '../../core/account/service-key.ts';
import { formatTimestampMicros } from '../../core/timestamp.ts';
import { isLive } from './live-service-key.ts';
import { inTransaction, isUuid, withDatabase } from './pool.ts';
import { keyChangesChannel } from './provider-keys.ts';
import { notifyRevoked } from './revoked-keys.ts';
import { microsOf } from './sql-micros.ts';
import type { AskedWith } from './user-lock.ts';
import { lockUser } from './user-lock.ts';

/** A service key without what proves it: neither the key nor its hash. */
export interface ServiceKeyRow {
  readonly id: string;
  readonly label: string | null;
  readonly createdAtMicros: number;
  /** Null: it has no end. */
  readonly expiresAtMicros: bigint | null;
  /** Start of the UTC hour in which it was last presented; null: never. */
  readonly lastUsedAtMicros: number | null;
}

export interface NewServiceKey {
  readonly label: string | null;
  readonly expiresAtMicros: bigint | null;
}

export type AddedServiceKey =
  | {
      readonly kind: 'added';
      readonly row: ServiceKeyRow /** In the clear, to be shown once. */;
      readonly apiKey: string;
    }
  | { readonly kind: 'too-many'; readonly most: number }
  /** The user, or the right to ask, is gone. */
  | { readonly kind: 'not-asked' };

export type DeletedServiceKey = 'deleted' | 'unknown' | 'last';

interface Row {
  readonly id: string;
  readonly label: string | null;
  readonly created_at_micros: string;
  readonly expires_at_micros: string | null;
  readonly last_used_at_micros: string | null;
}

const micros = (column: string): string => `${microsOf(column)} AS ${column}_micros`;
const columns = `id, label, ${micros('created_at')}, ${micros('expires_at')}, ${micros('last_used_at')}`;

function fromRow(row: Row): ServiceKeyRow {
  return {
    id: row.id,
    label: row.label,
    createdAtMicros: Number(row.created_at_micros),
    expiresAtMicros: row.expires_at_micros === null ? null : BigInt(row.expires_at_micros),
    lastUsedAtMicros: row.last_used_at_micros === null ? null : Number(row.last_used_at_micros),
  };
}

async function insertKey(
  client: pg.PoolClient,
  userId: string,
  key: NewServiceKey,
  askedWith: AskedWith,
): Promise<AddedServiceKey> {
  if (!(await lockUser(client, userId, askedWith))) return { kind: 'not-asked' };
  await client.query('DELETE FROM service_keys WHERE user_id = $1 AND expires_at <= now()', [userId]);
  const { rows: held } = await client.query('SELECT 1 FROM service_keys WHERE user_id = $1', [userId]);
  if (held.length >= maxServiceKeysPerUser) return { kind: 'too-many', most: maxServiceKeysPerUser };
  const apiKey = newServiceKey(randomBytes(32));
  const { rows } = await client.query<Row>(
    `INSERT INTO service_keys (key_hash, user_id, label, expires_at)
     VALUES ($1, $2, $3, $4::timestamptz) RETURNING ${columns}`,
    // As text: microseconds times an interval are exact until the year 2255 only.
    [
      Buffer.from(hashServiceKey(apiKey), 'hex'),
      userId,
      key.label,
      key.expiresAtMicros === null ? null : formatTimestampMicros(key.expiresAtMicros),
    ],
  );
  return { kind: 'added', row: fromRow(rows[0] as Row), apiKey };
}

/**
 * One more service key of the user, beside those it has; those that have expired are cleared away. It is good on every
 * replica at once, since unknown keys are looked up. Throws StoreAway.
 */
export function addServiceKey(
  pool: pg.Pool,
  userId: string,
  key: NewServiceKey,
  askedWith: AskedWith,
): Promise<AddedServiceKey> {
  return withDatabase(() => inTransaction(pool, (client) => insertKey(client, userId, key, askedWith)));
}

/** The user's service keys, oldest first, those that have expired included. Throws StoreAway. */
export async function listServiceKeys(pool: pg.Pool, userId: string): Promise<ServiceKeyRow[]> {
  const { rows } = await withDatabase(() =>
    pool.query<Row>(`SELECT ${columns} FROM service_keys WHERE user_id = $1 ORDER BY created_at, id`, [
      userId,
    ]),
  );
  return rows.map(fromRow);
}

async function deleteKey(client: pg.PoolClient, userId: string, keyId: string): Promise<DeletedServiceKey> {
  await lockUser(client, userId, null);
  const { rows } = await client.query<{ id: string; live: boolean }>(
    `SELECT id, ${isLive('service_keys')} AS live FROM service_keys WHERE user_id = $1`,
    [userId],
  );
  if (!rows.some(({ id }) => id === keyId)) return 'unknown';
  if (!rows.some((row) => row.live && row.id !== keyId)) return 'last';
  await takeAway(client, userId, keyId);
  return 'deleted';
}

/** False: the user has no such key. */
async function takeAway(client: pg.PoolClient, userId: string, keyId: string): Promise<boolean> {
  await notifyRevoked(client, userId, keyId);
  const { rowCount } = await client.query('DELETE FROM service_keys WHERE user_id = $1 AND id = $2', [
    userId,
    keyId,
  ]);
  await client.query('SELECT pg_notify($1, $2)', [keyChangesChannel, userId]);
  return rowCount === 1;
}

/**
 * Revokes a service key for its owner and notifies every replica; never the last one that is live, since who has none
 * cannot make another. Throws StoreAway.
 */
export async function deleteServiceKey(
  pool: pg.Pool,
  userId: string,
  keyId: string,
): Promise<DeletedServiceKey> {
  if (!isUuid(keyId)) return 'unknown';
  return withDatabase(() => inTransaction(pool, (client) => deleteKey(client, userId, keyId)));
}

/**
 * Revokes a service key for an operator, who can give the user another: the last one too. It notifies every replica.
 * False: the user has no such key. Throws StoreAway.
 */
export async function revokeServiceKey(pool: pg.Pool, userId: string, keyId: string): Promise<boolean> {
  if (!isUuid(keyId)) return false;
  return withDatabase(() =>
    inTransaction(pool, async (client) => {
      await lockUser(client, userId, null);
      return takeAway(client, userId, keyId);
    }),
  );
}
