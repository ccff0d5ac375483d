import type pg from 'pg';
import type { Account } from '../../chat/ports.ts';
import type { HeldKey } from '../../core/candidate.ts';
import type { ProviderName } from '../../core/provider-name.ts';

interface Row {
  readonly user_id: string;
  /** Null in the one row of a user without keys. */
  readonly id: string | null;
  readonly provider: ProviderName;
  readonly declared_region: string | null;
  readonly base_url: string | null;
  readonly label: string | null;
  readonly created_at_ms: string;
  readonly seal_version: number;
  readonly master_key_id: string;
  readonly nonce: Buffer;
  readonly ciphertext: Buffer;
}

const accountQuery = `
  SELECT s.user_id, k.id, k.provider, k.declared_region, k.base_url, k.label,
    (extract(epoch FROM k.created_at) * 1000)::bigint AS created_at_ms,
    k.seal_version, k.master_key_id, k.nonce, k.ciphertext
  FROM service_keys s LEFT JOIN provider_keys k ON k.user_id = s.user_id
  WHERE s.key_hash = $1
  ORDER BY k.created_at, k.id`;

function heldKey(row: Row, id: string): HeldKey {
  return {
    id,
    userId: row.user_id,
    provider: row.provider,
    declaredRegion: row.declared_region,
    baseUrl: row.base_url,
    label: row.label,
    createdAtMs: Number(row.created_at_ms),
    sealed: {
      version: row.seal_version,
      masterKeyId: row.master_key_id,
      nonce: row.nonce,
      ciphertext: row.ciphertext,
    },
  };
}

/**
 * The account behind a service key with all its provider keys, oldest first, in one query. Null: no such
 * key. `readAtMs` is the moment before the query, so that it never claims more than was read.
 */
export async function readAccount(pool: pg.Pool, keyHash: string, readAtMs: number): Promise<Account | null> {
  const { rows } = await pool.query<Row>(accountQuery, [Buffer.from(keyHash, 'hex')]);
  const first = rows[0];
  if (first === undefined) return null;
  const keys = rows.flatMap((row) => (row.id === null ? [] : [heldKey(row, row.id)]));
  return { userId: first.user_id, keys, readAtMs };
}
