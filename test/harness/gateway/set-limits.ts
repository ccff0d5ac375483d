import pg from 'pg';
import { setUserPolicy } from '../../../src/adapters/postgres/operators.ts';
import type { LimitChanges } from '../../../src/core/limits/user-limits.ts';
import { eventually } from '../measure/eventually.ts';
import { metric } from '../measure/fault-metrics.ts';
import type { User } from './register.ts';
import type { GatewayUnderTest } from './start-gateway.ts';

/** Decides as `model-gateway users limits` does, once the gateway listens for it: a second later all replicas know. */
export async function setLimits(
  gateway: Pick<GatewayUnderTest, 'adminUrl' | 'database'>,
  { id }: Pick<User, 'id'>,
  limits: LimitChanges,
): Promise<void> {
  await eventually(async () => (await metric(gateway, 'gw_key_changes_listening')) === 1 || undefined);
  const pool = new pg.Pool({ connectionString: gateway.database.url, max: 1 });
  try {
    if ((await setUserPolicy(pool, id, { limits })) === null) throw new Error(`there is no user ${id}`);
  } finally {
    await pool.end();
  }
}
