import { LRUCache } from 'lru-cache';
import type pg from 'pg';

/**
 * Tells every replica, as `<user id> <id of the service key>`, that the key is good no longer. Replicas of the release
 * before do not listen here: they learn of it as of any change of the user's keys.
 */
export const revokedKeysChannel = 'gw_revoked_keys';

/** Far more than are revoked within the ten minutes for which accounts are trusted without Postgres; a few MB. */
const maxRemembered = 20_000;

/**
 * Tells every replica of a service key of a user, or of all; for the transaction that takes them away, before it does.
 */
export async function notifyRevoked(
  client: pg.ClientBase,
  userId: string,
  serviceKeyId: string | 'all',
): Promise<void> {
  await client.query(
    `SELECT pg_notify('${revokedKeysChannel}', user_id || ' ' || id) FROM service_keys
     WHERE user_id = $1 AND ($2::uuid IS NULL OR id = $2)`,
    [userId, serviceKeyId === 'all' ? null : serviceKeyId],
  );
}

export interface RevokedKey {
  readonly userId: string;
  readonly serviceKeyId: string;
}

/** What a replica was told. */
export function readRevoked(payload: string): RevokedKey {
  const [userId = '', serviceKeyId = ''] = payload.split(' ');
  return { userId, serviceKeyId };
}

/**
 * Hashes of revoked service keys that this replica has served before: they are refused as unknown while Postgres is
 * away too, where a key that nobody knows would get 503.
 */
export class RevokedKeys {
  readonly #hashes = new LRUCache<string, true>({ max: maxRemembered });

  add(keyHash: string): void {
    this.#hashes.set(keyHash, true);
  }

  has(keyHash: string): boolean {
    return this.#hashes.size > 0 && this.#hashes.has(keyHash);
  }
}
