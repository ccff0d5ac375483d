import type { Logger } from 'pino';
import { sqlState } from '../adapters/postgres/pool.ts';
import type { Clock } from '../chat/ports.ts';
import { OnceAMinute } from '../once-a-minute.ts';
import type { StoreMetrics } from '../telemetry/store-metrics.ts';

/**
 * What `newRowsInto` is to tell of what it refused. A fast insert that is dead refuses every batch: all are counted,
 * and a line a minute says why. Of the error only its words: its details quote the row.
 */
export function refusedBatches(
  log: Pick<Logger, 'warn'>,
  clock: Pick<Clock, 'monotonicMs'>,
  metrics: Pick<StoreMetrics, 'batchRefused'>,
): (error: unknown) => void {
  const telling = new OnceAMinute(clock.monotonicMs);
  return (error) => {
    metrics.batchRefused();
    if (!telling.isDue()) return;
    const reason = error instanceof Error ? error.message : String(error);
    log.warn(
      { reason, code: sqlState(error) },
      'log rows were refused by the fast insert, and take the slow one',
    );
  };
}
