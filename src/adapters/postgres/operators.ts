import type pg from 'pg';
import { foldEmail } from '../../core/account/email.ts';
import type { LimitChanges, UserLimits } from '../../core/limits/user-limits.ts';
import { readUserLimits } from '../../core/limits/user-limits.ts';
import type { ResidencyBound } from '../../core/request/residency.ts';
import { isLive } from './live-service-key.ts';
import { inTransaction, isUuid, withDatabase } from './pool.ts';
import { keyChangesChannel } from './provider-keys.ts';
import { notifyRevoked } from './revoked-keys.ts';
import { microsOf } from './sql-micros.ts';

/** A user as an operator sees it: no key, no hash. */
export interface UserFacts {
  readonly id: string;
  readonly email: string;
  readonly createdAtMicros: number;
  /** Null: not disabled. */
  readonly disabledAtMicros: number | null;
  readonly residency: ResidencyBound;
  /** Where the user is an exception from the limits of the tables; null: nowhere. */
  readonly limits: UserLimits | null;
  /** Live ones. */
  readonly serviceKeys: number;
  readonly providerKeys: number;
}

/** What an operator decides for a user; what is left out stays as it is. */
export interface UserPolicy {
  readonly disabled?: boolean;
  readonly residency?: ResidencyBound;
  readonly limits?: LimitChanges;
}

interface Row {
  readonly id: string;
  readonly email: string;
  readonly created_at_micros: string;
  readonly disabled_at_micros: string | null;
  readonly residency: ResidencyBound;
  readonly limits: unknown;
  readonly service_keys: number;
  readonly provider_keys: number;
}

/** Of a table or query named `u`. */
const columns = `u.id, u.email, u.residency, u.limits,
  ${microsOf('u.created_at')} AS created_at_micros,
  ${microsOf('u.disabled_at')} AS disabled_at_micros,
  (SELECT count(*)::integer FROM service_keys s
   WHERE s.user_id = u.id AND ${isLive('s')}) AS service_keys,
  (SELECT count(*)::integer FROM provider_keys k WHERE k.user_id = u.id) AS provider_keys`;

function fromRow(row: Row): UserFacts {
  return {
    id: row.id,
    email: row.email,
    createdAtMicros: Number(row.created_at_micros),
    disabledAtMicros: row.disabled_at_micros === null ? null : Number(row.disabled_at_micros),
    residency: row.residency,
    limits: readUserLimits(row.limits),
    serviceKeys: row.service_keys,
    providerKeys: row.provider_keys,
  };
}

/** Users after the one of this id, in the order of their ids; `limit` at most. Throws StoreAway. */
export async function listUsers(pool: pg.Pool, afterId: string | null, limit: number): Promise<UserFacts[]> {
  const { rows } = await withDatabase(() =>
    pool.query<Row>(
      `SELECT ${columns} FROM users u WHERE $1::uuid IS NULL OR u.id > $1 ORDER BY u.id LIMIT $2`,
      [afterId, limit],
    ),
  );
  return rows.map(fromRow);
}

/** By id or e-mail address, in any case; null: there is none. Throws StoreAway. */
export async function findUser(pool: pg.Pool, idOrEmail: string): Promise<UserFacts | null> {
  // Postgres takes no such text, not even to look for it.
  if (idOrEmail.includes('\0')) return null;
  const [column, value] = isUuid(idOrEmail) ? ['id', idOrEmail] : ['email_folded', foldEmail(idOrEmail)];
  const { rows } = await withDatabase(() =>
    pool.query<Row>(`SELECT ${columns} FROM users u WHERE u.${column} = $1`, [value]),
  );
  return rows[0] === undefined ? null : fromRow(rows[0]);
}

/** Decides for a user and tells every replica; the user afterwards, null: there is none. Throws StoreAway. */
export async function setUserPolicy(
  pool: pg.Pool,
  userId: string,
  { disabled, residency, limits }: UserPolicy,
): Promise<UserFacts | null> {
  if (!isUuid(userId)) return null;
  const changes = Object.entries(limits ?? {});
  const set = Object.fromEntries(changes.filter(([, value]) => value !== undefined && value !== 'default'));
  const forgotten = changes.filter(([, value]) => value === 'default').map(([name]) => name);
  const { rows } = await withDatabase(() =>
    pool.query<Row>(
      `WITH changed AS (
         UPDATE users SET
           disabled_at = CASE $2::boolean WHEN true THEN coalesce(disabled_at, now()) WHEN false THEN NULL
             ELSE disabled_at END,
           residency = CASE WHEN $3::boolean THEN $4 ELSE residency END,
           limits = nullif((coalesce(limits, '{}') || $5::jsonb) - $6::text[], '{}')
         WHERE id = $1 RETURNING *
       )
       SELECT ${columns}, pg_notify($7, u.id::text) FROM changed u`,
      [
        userId,
        disabled ?? null,
        residency !== undefined,
        residency ?? null,
        JSON.stringify(set),
        forgotten,
        keyChangesChannel,
      ],
    ),
  );
  return rows[0] === undefined ? null : fromRow(rows[0]);
}

/**
 * Erases a user with its e-mail address and all its keys, and tells every replica. Log rows and sums name it by an id
 * that leads to nobody from then on (docs/decisions/0018). False: there is none. Throws StoreAway.
 */
export async function deleteUser(pool: pg.Pool, userId: string): Promise<boolean> {
  if (!isUuid(userId)) return false;
  return withDatabase(() =>
    inTransaction(pool, async (client) => {
      await client.query('SELECT 1 FROM users WHERE id = $1 FOR UPDATE', [userId]);
      await notifyRevoked(client, userId, 'all');
      await client.query('SELECT pg_notify($1, $2)', [keyChangesChannel, userId]);
      const { rowCount } = await client.query('DELETE FROM users WHERE id = $1', [userId]);
      return rowCount === 1;
    }),
  );
}
