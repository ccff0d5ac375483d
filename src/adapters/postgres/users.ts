import { randomBytes, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { foldEmail } from '../../core/account/email.ts';
import { hashServiceKey, newServiceKey } from '../../core/account/service-key.ts';
import { withDatabase } from './pool.ts';

export interface RegisteredUser {
  readonly userId: string;
  /** As given. */
  readonly email: string;
  /** The service key in the clear, for the one answer that shows it. */
  readonly apiKey: string;
}

/**
 * Creates a user with a fresh service key (SPEC 4.1), in one statement. The address was validated by the
 * caller. Null when it is taken, in any case. Throws StoreAway.
 */
export async function registerUser(
  pool: pg.Pool,
  { email }: { readonly email: string },
): Promise<RegisteredUser | null> {
  const userId = randomUUID();
  const apiKey = newServiceKey(randomBytes(32));
  const keyHash = Buffer.from(hashServiceKey(apiKey), 'hex');
  const { rowCount } = await withDatabase(() =>
    pool.query(
      `WITH added AS (
         INSERT INTO users (id, email, email_folded) VALUES ($1, $2, $3)
         ON CONFLICT (email_folded) DO NOTHING RETURNING id
       )
       INSERT INTO service_keys (key_hash, user_id) SELECT $4, id FROM added`,
      [userId, email, foldEmail(email), keyHash],
    ),
  );
  return rowCount === 0 ? null : { userId, email, apiKey };
}
