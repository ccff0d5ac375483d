import type pg from 'pg';
import type { Sealer } from '../system/sealer.ts';
import { sealVersion } from '../system/sealer.ts';
import { withDatabase } from './pool.ts';
import { keyChangesChannel } from './provider-keys.ts';
import type { SealedKeyRow } from './sealed-key-row.ts';
import { heldKeyOf, sealedKeyColumns } from './sealed-key-row.ts';

export interface ResealReport {
  /** Rows now sealed with the first key, by the newest version of the seal. */
  readonly moved: number;
  /** Ids of rows that do not open under any key given; left as they are. */
  readonly failed: readonly string[];
}

const batchRows = 100;
const beforeAllIds = '00000000-0000-0000-0000-000000000000';

/**
 * Replaces the sealed bytes only if nobody else did meanwhile, and notifies the replicas' caches. The new seal covers
 * what was read: a row that is edited in between keeps the edit and does not open.
 */
async function moveRow(
  pool: pg.Pool,
  sealer: Sealer,
  row: SealedKeyRow,
): Promise<'moved' | 'stayed' | 'unopened'> {
  const key = heldKeyOf(row);
  const secret = sealer.open(key);
  if (secret === null) return 'unopened';
  if (row.master_key_id === sealer.currentKeyId && row.seal_version === sealVersion) return 'stayed';
  const sealed = sealer.seal(secret.reveal(), key);
  const { rowCount } = await withDatabase(() =>
    pool.query(
      `WITH moved AS (
         UPDATE provider_keys SET seal_version = $1, master_key_id = $2, nonce = $3, ciphertext = $4
         WHERE id = $5 AND nonce = $6 AND ciphertext = $7 RETURNING user_id
       )
       SELECT pg_notify($8, user_id::text) FROM moved`,
      [
        sealed.version,
        sealed.masterKeyId,
        sealed.nonce,
        sealed.ciphertext,
        row.id,
        row.nonce,
        row.ciphertext,
        keyChangesChannel,
      ],
    ),
  );
  return rowCount === 1 ? 'moved' : 'stayed';
}

async function countRows(pool: pg.Pool): Promise<number> {
  const { rows } = await withDatabase(() =>
    pool.query<{ count: number }>('SELECT count(*)::int AS count FROM provider_keys'),
  );
  return rows[0]?.count ?? 0;
}

/**
 * Moves every provider key to the first sealing key and the newest version of the seal while the gateway serves. May
 * be killed anywhere and run again, or run twice at once: each row moves by itself, and rows already moved are opened
 * and not touched: other bytes may have been given under the same id. When `failed` is empty, the older keys can be
 * taken out of the settings. `passed` hears of each batch how many more rows were looked at, and which share of all
 * (0 to 1) this makes. Throws StoreAway.
 */
export async function reseal(
  pool: pg.Pool,
  sealer: Sealer,
  passed: (more: number, share: number) => void = () => undefined,
): Promise<ResealReport> {
  const failed: string[] = [];
  const all = await countRows(pool);
  let [moved, done] = [0, 0];
  for (let lastId = beforeAllIds; ; ) {
    const { rows } = await withDatabase(() =>
      pool.query<SealedKeyRow>(
        `SELECT ${sealedKeyColumns} FROM provider_keys WHERE id > $1 ORDER BY id LIMIT ${batchRows}`,
        [lastId],
      ),
    );
    for (const row of rows) {
      const what = await moveRow(pool, sealer, row);
      if (what === 'moved') moved += 1;
      else if (what === 'unopened') failed.push(row.id);
    }
    const last = rows.at(-1);
    if (last === undefined) return { moved, failed };
    lastId = last.id;
    done += rows.length;
    // Keys that come meanwhile are sealed anew already, unless an older gateway sealed them.
    passed(rows.length, Math.min(1, done / all));
  }
}
