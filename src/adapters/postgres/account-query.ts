import type pg from 'pg';
import type { Caller } from '../../chat/ports.ts';
import type { HeldKey } from '../../core/candidate.ts';
import { compileExceptions, readUserLimits } from '../../core/limits/user-limits.ts';
import { ownCopy } from '../../core/own-copy.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import { isLive } from './live-service-key.ts';

interface Row {
  readonly user_id: string;
  readonly service_key_id: string;
  readonly expires_in_ms: number | null;
  readonly used_this_hour: boolean;
  readonly disabled: boolean;
  readonly residency: 'india' | null;
  readonly limits: unknown;
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
  SELECT s.user_id, s.id AS service_key_id,
    (extract(epoch FROM s.expires_at - now()) * 1000)::float8 AS expires_in_ms,
    coalesce(s.last_used_at >= date_trunc('hour', now(), 'UTC'), false) AS used_this_hour,
    u.disabled_at IS NOT NULL AS disabled, u.residency, u.limits,
    k.id, k.provider, k.declared_region, k.base_url, k.label,
    (extract(epoch FROM k.created_at) * 1000)::bigint AS created_at_ms,
    k.seal_version, k.master_key_id, k.nonce, k.ciphertext
  FROM service_keys s JOIN users u ON u.id = s.user_id LEFT JOIN provider_keys k ON k.user_id = s.user_id
  WHERE s.key_hash = $1 AND ${isLive('s')}
  ORDER BY k.created_at, k.id`;

/** An account, and what only its cache needs to know. */
export interface LoadedAccount extends Caller {
  /** When the key that was presented ends (process-monotonic milliseconds, by the clock of Postgres); null: never. */
  readonly expiresAtMs: number | null;
  /** Postgres knows already that the key was presented in this hour. */
  readonly usedThisHour: boolean;
}

function heldKey(row: Row, id: string): HeldKey {
  return Object.freeze({
    id,
    userId: row.user_id,
    provider: row.provider,
    declaredRegion: row.declared_region,
    baseUrl: row.base_url,
    label: row.label,
    createdAtMs: Number(row.created_at_ms),
    sealed: Object.freeze({
      version: row.seal_version,
      masterKeyId: row.master_key_id,
      nonce: ownCopy(row.nonce),
      ciphertext: ownCopy(row.ciphertext),
    }),
  });
}

/**
 * The account behind a service key with all its provider keys, oldest first, in one query. Null: no such key, or one
 * that has expired. `readAtMs` is the moment before the query, so that it never claims more than was read.
 */
export async function readAccount(
  pool: pg.Pool,
  keyHash: string,
  readAtMs: number,
): Promise<LoadedAccount | null> {
  const { rows } = await pool.query<Row>(accountQuery, [Buffer.from(keyHash, 'hex')]);
  const first = rows[0];
  if (first === undefined) return null;
  const keys = rows.flatMap((row) => (row.id === null ? [] : [heldKey(row, row.id)]));
  return {
    userId: first.user_id,
    keys,
    serviceKeyId: first.service_key_id,
    disabled: first.disabled,
    residency: first.residency,
    limits: compileExceptions(readUserLimits(first.limits)),
    readAtMs,
    expiresAtMs: first.expires_in_ms === null ? null : readAtMs + first.expires_in_ms,
    usedThisHour: first.used_this_hour,
  };
}

/** Objects, ids and Buffers of one key, or of an account without keys. */
const recordBytes = 512;

/** Bytes an account takes in memory, roughly. */
export function accountBytes({ keys }: LoadedAccount): number {
  let bytes = recordBytes;
  for (const { sealed, baseUrl, label, declaredRegion } of keys) {
    const texts = (baseUrl?.length ?? 0) + (label?.length ?? 0) + (declaredRegion?.length ?? 0);
    bytes += recordBytes + sealed.ciphertext.length + 2 * texts;
  }
  return bytes;
}
