import type pg from 'pg';
import type { SealingKey } from '../core/secret/sealing-key.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Stores } from './stores.ts';

type Database = NonNullable<Stores['database']>;

/** A label value for master keys that are not configured, or with other bytes: what they sealed cannot be opened. */
const missingKey = '_missing';

/** Numbers of Postgres and Redis, read when they are scraped. */
export function watchStores(
  metrics: Metrics,
  { database, cacheStats }: Stores,
  sealingKeys: readonly SealingKey[],
): void {
  watchPools(metrics, database);
  metrics.observe('gw_sealed_keys', () => (database === null ? [] : sealedKeys(database, sealingKeys)));
  // Without a database there are none to keep, and a 0 would be an alarm.
  if (database !== null) {
    const keptAtMs = () => database.partitionsKeptAtMs() ?? 0;
    metrics.observe('gw_log_partitions_kept_timestamp_seconds', () => keptAtMs() / 1000);
  }
  metrics.observe('gw_key_changes_listening', () => Number(database?.listening() ?? true));
  metrics.observe('gw_redis_up', () => Number(cacheStats?.().up ?? true));
  metrics.observe('gw_cache_errors_total', () => cacheStats?.().errors ?? 0);
  metrics.observe('gw_cache_unstored_total', () => cacheStats?.().unstored ?? 0);
}

/** The first configured key seals, the others are on their way out. Nothing before the first count. */
function sealedKeys(
  { sealedKeys: read }: Database,
  sealingKeys: readonly SealingKey[],
): readonly (readonly [{ readonly kid: string; readonly state: string }, number])[] {
  const counts = read();
  if (counts === null) return [];
  return [
    ...sealingKeys.map(({ id }, index) => {
      const state = index === 0 ? 'active' : 'retired';
      return [{ kid: id, state }, counts.byId.get(id) ?? 0] as const;
    }),
    [{ kid: missingKey, state: 'missing' }, counts.unopened],
  ];
}

/** Sampled by `max`: pg opens connections on demand. */
function poolReadings(
  pools: readonly (readonly [name: string, pool: pg.Pool])[],
  read: (pool: pg.Pool) => number,
): readonly (readonly [{ readonly pool: string }, number])[] {
  return pools.map(([name, pool]) => [{ pool: name }, read(pool)] as const);
}

function watchPools(metrics: Metrics, database: Database | null): void {
  const pools: (readonly [string, pg.Pool])[] =
    database === null
      ? []
      : [
          ['main', database.pool],
          ['query', database.queryPool],
          ['log', database.logPool],
          ['operators', database.operatorsPool],
          ['spend', database.spendPool],
        ];
  metrics.observe('gw_db_pool_connections', () =>
    pools.flatMap(([pool, { totalCount, idleCount }]) => [
      [{ pool, state: 'active' }, totalCount - idleCount] as const,
      [{ pool, state: 'idle' }, idleCount] as const,
    ]),
  );
  metrics.observe('gw_db_pool_waiting', () => poolReadings(pools, (pool) => pool.waitingCount));
  metrics.observe('gw_db_pool_max', () => poolReadings(pools, (pool) => pool.options.max ?? 0));
}
