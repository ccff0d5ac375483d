import type pg from 'pg';
import type { ProviderKeyUse } from '../../core/account/key-verdict.ts';
import { withDatabase } from './pool.ts';

/** Rows that are looked at: a key that was not among the candidates of so many requests is not in use. */
const latestRows = 100;

/** Which keys the user's latest requests used, newest first. Throws StoreAway. */
export async function readProviderKeyUses(pool: pg.Pool, userId: string): Promise<readonly ProviderKeyUse[]> {
  const { rows } = await withDatabase(() =>
    pool.query<ProviderKeyUse>(
      `SELECT key_id, attempts FROM request_logs WHERE user_id = $1
       ORDER BY created_at DESC, id DESC LIMIT ${latestRows}`,
      [userId],
    ),
  );
  return rows;
}
