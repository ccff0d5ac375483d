import { expect, test } from 'vitest';
import { Metrics } from '../../src/telemetry/metrics.ts';
import type { Stores } from '../../src/wiring/stores.ts';
import { watchStores } from '../../src/wiring/watch-stores.ts';

test.each<[string, Partial<Stores['database']> | null, string | null]>([
  ['never', { partitionsKeptAtMs: () => null }, 'gw_log_partitions_kept_timestamp_seconds 0\n'],
  ['lately', { partitionsKeptAtMs: () => 1_500 }, 'gw_log_partitions_kept_timestamp_seconds 1.5\n'],
  // A 0 would be an alarm for ever.
  ['by nobody, without a database', null, null],
])('weeks of the log that were kept %s', async (_name, database, line) => {
  const metrics = new Metrics();
  const sealedKeys = () => null;
  const pools = { pool: {}, queryPool: {}, logPool: {}, operatorsPool: {}, spendPool: {} };
  const stores = {
    database: database === null ? null : { ...pools, sealedKeys, ...database },
    cacheStats: null,
  };
  watchStores(metrics, stores as unknown as Stores, []);
  const text = await metrics.registry
    .getSingleMetricAsString('gw_log_partitions_kept_timestamp_seconds')
    .catch(() => null);
  if (line === null) expect(text).toBeNull();
  else expect(`${text}\n`).toContain(line);
});
