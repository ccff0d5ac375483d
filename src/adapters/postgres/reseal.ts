import type pg from 'pg';
import type { HeldKey } from '../../core/candidate.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import type { Sealer } from '../sealer.ts';
import { SealError } from '../sealer.ts';
import { withDatabase } from './pool.ts';
import { keyChangesChannel } from './provider-keys.ts';

export interface ResealReport {
  /** Rows now sealed with the first key. */
  readonly moved: number;
  /** Ids of rows that do not open under any key given; left as they are. */
  readonly failed: readonly string[];
}

interface Row {
  readonly id: string;
  readonly user_id: string;
  readonly provider: ProviderName;
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
    declaredRegion: null,
    baseUrl: null,
    label: null,
    createdAtMs: 0,
    sealed: { masterKeyId: row.master_key_id, nonce: row.nonce, ciphertext: row.ciphertext },
  };
}

/** Replaces the sealed bytes only if nobody else did meanwhile, and tells the replicas' caches. */
async function moveRow(pool: pg.Pool, sealer: Sealer, row: Row): Promise<boolean> {
  const plaintext = sealer.open(heldKey(row)).reveal();
  const binding = { recordId: row.id, userId: row.user_id, provider: row.provider };
  const sealed = sealer.seal(plaintext, binding);
  const { rowCount } = await withDatabase(() =>
    pool.query(
      `WITH moved AS (
         UPDATE provider_keys SET master_key_id = $1, nonce = $2, ciphertext = $3
         WHERE id = $4 AND nonce = $5 AND ciphertext = $6 RETURNING user_id
       )
       SELECT pg_notify($7, user_id::text) FROM moved`,
      [
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
  return rowCount === 1;
}

/**
 * Moves every provider key to the first sealing key while the gateway serves. May be killed anywhere and
 * run again, or run twice at once: each row moves by itself, and rows already moved are not touched. When
 * `failed` is empty, the older keys can be taken out of the settings. Throws ServiceUnavailableError.
 */
export async function reseal(pool: pg.Pool, sealer: Sealer, signal?: AbortSignal): Promise<ResealReport> {
  const failed: string[] = [];
  let moved = 0;
  for (let lastId = beforeAllIds; ; ) {
    signal?.throwIfAborted();
    const { rows } = await withDatabase(() =>
      pool.query<Row>(
        `SELECT id, user_id, provider, master_key_id, nonce, ciphertext FROM provider_keys
         WHERE master_key_id <> $1 AND id > $2 ORDER BY id LIMIT ${batchRows}`,
        [sealer.currentKeyId, lastId],
      ),
    );
    for (const row of rows) {
      signal?.throwIfAborted();
      try {
        if (await moveRow(pool, sealer, row)) moved += 1;
      } catch (error) {
        if (!(error instanceof SealError)) throw error;
        failed.push(row.id);
      }
    }
    const last = rows.at(-1);
    if (last === undefined) return { moved, failed };
    lastId = last.id;
  }
}
