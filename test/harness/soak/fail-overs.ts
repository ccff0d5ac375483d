import { untilMetric } from './until-metrics.ts';
import type { SoakWorld } from './world.ts';

/** Which store fails over. */
export type Store = 'Postgres' | 'Redis';

/** The fail-overs come in turn, two in so many rounds: the others are judged for latency. */
const roundsPerTurn = 5;

/**
 * What fails over in a round (0 is the first). The warm-up, the first quarter, has both, so that what a fail-over leaves in
 * memory for good is there before memory is judged.
 */
export function failOverOf(round: number): Store | null {
  const place = round % roundsPerTurn;
  if (place === 1) return 'Postgres';
  return place === 3 ? 'Redis' : null;
}

/** Resolves when all is as before; seconds from the take-over until then. */
export function failOver(world: SoakWorld, store: Store): Promise<number> {
  return store === 'Postgres' ? failPostgresOver(world) : failRedisOver(world);
}

/** The primary is killed; once rows wait in the spool the standby takes over, and another standby is made. */
async function failPostgresOver({ gateway, stores: { postgres } }: SoakWorld): Promise<number> {
  postgres.killPrimary();
  await untilMetric(gateway, 'gw_log_spool_bytes', (bytes) => bytes > 0);
  await postgres.promote();
  const promotedAtMs = performance.now();
  await untilMetric(gateway, 'gw_key_changes_listening', (isListening) => isListening === 1);
  await untilMetric(gateway, 'gw_log_spool_bytes', (bytes) => bytes === 0);
  const seconds = (performance.now() - promotedAtMs) / 1000;
  await postgres.renewStandby();
  return seconds;
}

/** The primary is killed; sentinels name the replica, and what was killed comes back as the replica of that. */
async function failRedisOver({ gateway, stores: { redis } }: SoakWorld): Promise<number> {
  await redis.failOver();
  const promotedAtMs = performance.now();
  await untilMetric(gateway, 'gw_redis_up', (isUp) => isUp === 1);
  const seconds = (performance.now() - promotedAtMs) / 1000;
  await redis.renewReplica();
  return seconds;
}
