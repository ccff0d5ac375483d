import type pg from 'pg';
import type { HeldKey } from '../../core/candidate.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import type { Sealer } from '../system/sealer.ts';
import { sealVersion } from '../system/sealer.ts';
import { withDatabase } from './pool.ts';
import { keyChangesChannel } from './provider-keys.ts';

export interface ResealReport {
  /** Rows now sealed with the first key, by the newest version of the seal. */
  readonly moved: number;
  /** Ids of rows that do not open under any key given; left as they are. */
  readonly failed: readonly string[];
}

interface Row {
  readonly id: string;
  readonly user_id: string;
  readonly provider: ProviderName;
  readonly declared_region: string | null;
  readonly base_url: string | null;
  readonly seal_version: number;
  readonly master_key_id: string;
  readonly nonce: Buffer;
  readonly ciphertext: Buffer;
}

const batchRows = 100;
const beforeAllIds = '00000000-0000-0000-0000-000000000000';

function heldKey(row: Row): HeldKey {
  return {
    id: row.id,
    userId: row.user_id,
    provider: row.provider,
    declaredRegion: row.declared_region,
    baseUrl: row.base_url,
    label: null,
    createdAtMs: 0,
    sealed: {
      version: row.seal_version,
      masterKeyId: row.master_key_id,
      nonce: row.nonce,
      ciphertext: row.ciphertext,
    },
  };
}

/**
 * Replaces the sealed bytes only if nobody else did meanwhile, and notifies the replicas' caches. The new seal covers
 * what was read: a row that is edited in between keeps the edit and does not open.
 */
async function moveRow(pool: pg.Pool, sealer: Sealer, row: Row): Promise<'moved' | 'changed' | 'unopened'> {
  const key = heldKey(row);
  const secret = sealer.open(key);
  if (secret === null) return 'unopened';
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
  return rowCount === 1 ? 'moved' : 'changed';
}

/** Those that the first key has not sealed, or not by the newest version of the seal; `$1` is its id. */
const toMove = `(master_key_id <> $1 OR seal_version < ${sealVersion})`;

async function countRows(pool: pg.Pool, sealer: Sealer): Promise<number> {
  const { rows } = await withDatabase(() =>
    pool.query<{ count: number }>(`SELECT count(*)::int AS count FROM provider_keys WHERE ${toMove}`, [
      sealer.currentKeyId,
    ]),
  );
  return rows[0]?.count ?? 0;
}

/**
 * Moves every provider key to the first sealing key and the newest version of the seal while the gateway serves. May
 * be killed anywhere and run again, or run twice at once: each row moves by itself, and rows already moved are not
 * touched. When `failed` is empty, the older keys can be taken out of the settings. `passed` hears of each batch how
 * many more rows were looked at, and which share of those to move (0 to 1) this makes. Throws StoreAway.
 */
export async function reseal(
  pool: pg.Pool,
  sealer: Sealer,
  passed: (more: number, share: number) => void = () => undefined,
): Promise<ResealReport> {
  const failed: string[] = [];
  const all = await countRows(pool, sealer);
  let [moved, done] = [0, 0];
  for (let lastId = beforeAllIds; ; ) {
    const { rows } = await withDatabase(() =>
      pool.query<Row>(
        `SELECT id, user_id, provider, declared_region, base_url, seal_version, master_key_id, nonce, ciphertext
         FROM provider_keys WHERE ${toMove} AND id > $2
         ORDER BY id LIMIT ${batchRows}`,
        [sealer.currentKeyId, lastId],
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
