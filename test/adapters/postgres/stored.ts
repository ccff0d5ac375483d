import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { ProviderKeyRow } from '../../../src/adapters/postgres/provider-keys.ts';
import { addProviderKey } from '../../../src/adapters/postgres/provider-keys.ts';
import { readLogRows } from '../../../src/adapters/postgres/read-log-rows.ts';
import { readSums } from '../../../src/adapters/postgres/read-sums.ts';
import type { RegisteredUser } from '../../../src/adapters/postgres/users.ts';
import { registerUser } from '../../../src/adapters/postgres/users.ts';
import type { Sealer } from '../../../src/adapters/system/sealer.ts';
import type { NewProviderKey } from '../../../src/core/account/new-provider-key.ts';
import { decodeLogCursor } from '../../../src/core/log/log-cursor.ts';
import type { StatsGroup } from '../../../src/core/stats-group.ts';
import { logPage } from '../../../src/http/routes/logs.ts';
import { stats } from '../../../src/http/routes/stats.ts';
import type { Stats } from '../../../src/http/schemas/answer-schemas.ts';
import type { LogPage } from '../../../src/http/schemas/log-schemas.ts';

/** A user of the test's own. */
export async function newUser(pool: pg.Pool, email = `${randomUUID()}@example.com`): Promise<RegisteredUser> {
  const user = await registerUser(pool, { email });
  if (user === null) throw new Error(`${email} is taken`);
  return user;
}

/** A stored key; one that is refused fails the test. */
export async function storeKey(
  pool: pg.Pool,
  sealer: Sealer,
  userId: string,
  key: NewProviderKey,
): Promise<ProviderKeyRow> {
  const added = await addProviderKey(pool, sealer, userId, key, null);
  if (added.kind !== 'added') throw new Error(`the key is refused: ${added.kind}`);
  return added.row;
}

/** A page as the route shows it. */
export function readLogs(
  pool: pg.Pool,
  userId: string,
  { since, limit, cursor }: { since: bigint | null; limit: number; cursor: string | null },
): Promise<LogPage> {
  const query = {
    since: since ?? undefined,
    limit,
    cursor: (cursor === null ? null : decodeLogCursor(cursor)) ?? undefined,
  };
  return logPage(
    { readLogRows: async (owner, rows, take) => take(await readLogRows(pool, owner, rows)) },
    userId,
    query,
    async (whole) => whole,
  );
}

/** Sums as the route shows them. */
export function readStats(
  pool: pg.Pool,
  userId: string,
  { since, until, groupBy }: { since: bigint | null; until: bigint | null; groupBy: readonly StatsGroup[] },
): Promise<Stats> {
  const query = { since: since ?? undefined, until: until ?? undefined, group_by: [...groupBy] };
  return stats(
    { readSums: async (owner, sums, take) => take(await readSums(pool, owner, sums)) },
    userId,
    query,
    async (whole) => whole,
  );
}
