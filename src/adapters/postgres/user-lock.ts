import type pg from 'pg';
import { isLive } from './live-service-key.ts';

/** The service key with which a change is asked for; null: an operator asks. */
export type AskedWith = string | null;

/**
 * Whoever changes the keys of a user waits for the others who do. False: there is no such user, or whoever asks was let
 * in by a key that was revoked since then, or for a user who was disabled. A thief's requests would else make another
 * key while the first one is taken back.
 */
export async function lockUser(
  client: pg.PoolClient,
  userId: string,
  askedWith: AskedWith,
): Promise<boolean> {
  const { rows } = await client.query<{ disabled: boolean }>(
    'SELECT disabled_at IS NOT NULL AS disabled FROM users WHERE id = $1 FOR NO KEY UPDATE',
    [userId],
  );
  const [user] = rows;
  if (user === undefined) return false;
  if (askedWith === null) return true;
  // A statement of its own: it sees what was committed while the lock was waited for.
  const { rowCount } = await client.query(
    `SELECT 1 FROM service_keys k WHERE k.user_id = $1 AND k.id = $2 AND ${isLive('k')}`,
    [userId, askedWith],
  );
  return !user.disabled && rowCount === 1;
}
