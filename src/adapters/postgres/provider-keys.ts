import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../core/errors.ts';
import type { ProviderKeyRow } from '../../core/provider-key-record.ts';
import type { ProviderName } from '../../core/provider-name.ts';
import type { Secret } from '../../core/secret.ts';
import type { Sealer } from '../sealer.ts';
import { inTransaction, withDatabase } from './pool.ts';

/** Tells every replica, with the user's id as payload, that the user's provider keys changed. */
export const keyChangesChannel = 'gw_key_changes';

/** Bounds what one account query loads and one override has to choose from. */
export const maxSelfHostedKeys = 100;

export interface NewProviderKey {
  readonly provider: ProviderName;
  readonly apiKey: Secret;
  /** Set for self_hosted only. */
  readonly baseUrl: string | null;
  readonly declaredRegion: string | null;
  readonly label: string | null;
}

interface Row {
  readonly id: string;
  readonly provider: ProviderName;
  readonly declared_region: string | null;
  readonly base_url: string | null;
  readonly label: string | null;
  readonly created_at_micros: string;
}

const columns = `id, provider, declared_region, base_url, label,
  (extract(epoch FROM created_at) * 1000000)::bigint AS created_at_micros`;

function fromRow(row: Row): ProviderKeyRow {
  return {
    id: row.id,
    provider: row.provider,
    declaredRegion: row.declared_region,
    baseUrl: row.base_url,
    label: row.label,
    createdAtMicros: Number(row.created_at_micros),
  };
}

async function insertKey(
  client: pg.PoolClient,
  sealer: Sealer,
  userId: string,
  key: NewProviderKey,
): Promise<ProviderKeyRow> {
  // The lock makes the count exact when one user registers many keys at once.
  await client.query('SELECT 1 FROM users WHERE id = $1 FOR NO KEY UPDATE', [userId]);
  if (key.provider === 'self_hosted') {
    const { rows } = await client.query<{ held: number }>(
      `SELECT count(*)::integer AS held FROM provider_keys WHERE user_id = $1 AND provider = 'self_hosted'`,
      [userId],
    );
    if ((rows[0]?.held ?? 0) >= maxSelfHostedKeys) {
      const message = `At most ${maxSelfHostedKeys} self_hosted keys can be registered; delete one first.`;
      throw new InvalidRequestError(message, 'provider', 'too_many_keys');
    }
  }
  const id = randomUUID();
  const { provider, declaredRegion, baseUrl } = key;
  const binding = { id, userId, provider, declaredRegion, baseUrl };
  const sealed = sealer.seal(key.apiKey.reveal(), binding);
  const { rows } = await client.query<Row>(
    `INSERT INTO provider_keys
       (id, user_id, provider, declared_region, base_url, label, seal_version, master_key_id, nonce, ciphertext)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT (user_id, provider) WHERE provider <> 'self_hosted' DO NOTHING
     RETURNING ${columns}`,
    [
      id,
      userId,
      provider,
      declaredRegion,
      baseUrl,
      key.label,
      sealed.version,
      sealed.masterKeyId,
      sealed.nonce,
      sealed.ciphertext,
    ],
  );
  const row = rows[0];
  if (row === undefined) {
    throw new ConflictError(`A key for ${key.provider} is already registered; delete it first.`, 'provider');
  }
  await client.query('SELECT pg_notify($1, $2)', [keyChangesChannel, userId]);
  return fromRow(row);
}

/**
 * Seals and stores a provider key (SPEC 4.2) and tells every replica. The fields were validated by the
 * caller. Throws ConflictError for a second commercial key of one provider, InvalidRequestError past
 * `maxSelfHostedKeys`, ServiceUnavailableError.
 */
export function addProviderKey(
  pool: pg.Pool,
  sealer: Sealer,
  userId: string,
  key: NewProviderKey,
): Promise<ProviderKeyRow> {
  return withDatabase(() => inTransaction(pool, (client) => insertKey(client, sealer, userId, key)));
}

/** The caller's keys, oldest first (SPEC 4.3). */
export async function listProviderKeys(pool: pg.Pool, userId: string): Promise<ProviderKeyRow[]> {
  const { rows } = await withDatabase(() =>
    pool.query<Row>(`SELECT ${columns} FROM provider_keys WHERE user_id = $1 ORDER BY created_at, id`, [
      userId,
    ]),
  );
  return rows.map(fromRow);
}

/** Postgres would also read braces; only the plain form (RFC 9562) names a key. */
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Deletes the caller's key and tells every replica; its provider. Throws NotFoundError for a missing or foreign one.
 */
export async function deleteProviderKey(pool: pg.Pool, userId: string, keyId: string): Promise<ProviderName> {
  const result = uuid.test(keyId)
    ? await withDatabase(() =>
        pool.query<{ provider: ProviderName }>(
          `WITH gone AS (DELETE FROM provider_keys WHERE id = $1 AND user_id = $2 RETURNING user_id, provider)
           SELECT provider, pg_notify($3, user_id::text) FROM gone`,
          [keyId, userId, keyChangesChannel],
        ),
      )
    : null;
  const gone = result?.rows[0];
  if (gone === undefined) throw new NotFoundError('No such provider key.');
  return gone.provider;
}
