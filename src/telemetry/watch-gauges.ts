import type { TablesSource } from '../adapters/last-good-tables.ts';
import type { Life } from '../http/life.ts';
import type { Stores } from '../stores.ts';
import type { Metrics } from './metrics.ts';

/** Numbers that other parts own, read when they are scraped. */
export function watchGauges(
  metrics: Metrics,
  parts: { readonly tables: TablesSource; readonly stores: Stores; readonly life: Life },
): void {
  const { tables, stores, life } = parts;
  const log = () => stores.requestLog.stats();
  metrics.observe('gauge', 'gw_inflight_requests', 'Chat requests under way.', () => life.activeCount);
  metrics.observe('gauge', 'gw_draining', '1 after SIGTERM.', () => Number(life.draining));
  metrics.observe('gauge', 'gw_config_generation', 'Loads of the tables.', () => tables.status().generation);
  metrics.observe('gauge', 'gw_config_last_reload_successful', '0 while a newer document is refused.', () =>
    Number(tables.status().lastReloadOk),
  );
  metrics.observe('counter', 'gw_log_rows_accepted_total', 'Log rows settled.', () => log().accepted);
  metrics.observe('counter', 'gw_log_rows_written_total', 'Log rows committed.', () => log().written);
  metrics.observe(
    'counter',
    'gw_log_rows_spooled_total',
    'Log rows put into the spool.',
    () => log().spooled,
  );
  metrics.observe('counter', 'gw_log_rows_dropped_total', 'Log rows lost to the store.', () => log().dropped);
  metrics.observe('gauge', 'gw_log_queue_depth', 'Log rows waiting.', () => log().queueDepth);
  metrics.observe('gauge', 'gw_log_spool_bytes', 'Size of the spool.', () => log().spoolBytes);
}
