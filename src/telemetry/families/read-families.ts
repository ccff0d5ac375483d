import { countOf, gaugeOf } from './family.ts';

/** Numbers that other parts own, read at each scrape. */
export const readFamilies = {
  // Requests, tables, providers, log rows: wiring/watch-gauges.ts.
  gw_build_info: gaugeOf('What is running; always 1.', 'version', 'node'),
  gw_inflight_requests: gaugeOf('Chat requests under way.'),
  gw_inflight_attempts: gaugeOf(
    'Calls to providers under way, those included whose usage or end is still read when the client has its answer.',
  ),
  gw_inflight_streams: gaugeOf('Streams open now.'),
  gw_stream_buffered_bytes: gaugeOf('Bytes written to clients that they have not taken yet.'),
  gw_draining: gaugeOf('1 after SIGTERM.'),
  gw_config_generation: gaugeOf('Loads of the tables.'),
  gw_config_info: gaugeOf('The tables in use; always 1.', 'hash'),
  gw_config_last_reload_successful: gaugeOf('0 while a newer document is refused.'),
  gw_config_last_reload_success_timestamp_seconds: gaugeOf('When the tables in use were loaded.'),
  gw_config_reloads_total: countOf('Loads of the tables by result.', 'result'),
  gw_legacy_sunset_timestamp_seconds: gaugeOf(
    'When the names from before the rename stop working; 0 where there are none.',
  ),
  gw_provider_health: gaugeOf(
    '0 while a whole provider, never a server of a user, is tried last because several users saw it fail, 0.5 while a probe is under way.',
    'provider',
  ),
  gw_provider_circuit_transitions_total: countOf(
    'How often attempts brought a provider into a state: open, half_open, closed; a pause that just ends is not counted.',
    'provider',
    'to',
  ),
  gw_provider_retry_after_seconds: gaugeOf('How long a provider last asked to wait.', 'provider'),
  gw_upstream_connections: gaugeOf(
    'Sockets to providers: active with a call, idle, or waiting to be made.',
    'provider',
    'state',
  ),
  gw_log_rows_accepted_total: countOf('Log rows settled; accepted = written + spooled + dropped + waiting.'),
  gw_log_rows_written_total: countOf(
    'Log rows committed at once; of a sidecar without a database: on stdout.',
  ),
  gw_log_rows_spooled_total: countOf('Log rows put into the spool.'),
  gw_log_rows_dropped_total: countOf(
    'Log rows that neither Postgres nor the spool took, printed; of a sidecar: not taken by stdout, gone.',
  ),
  gw_log_rows_replayed_total: countOf('Log rows taken from the spool to Postgres, which lacked them.'),
  gw_log_rows_bad_total: countOf('Spool lines that are torn or that Postgres refuses.'),
  gw_log_rows_printed_total: countOf('Log rows printed because no store took them, or at the end.'),
  gw_log_queue_depth: gaugeOf('Log rows waiting.'),
  gw_log_oldest_row_age_seconds: gaugeOf('Age of the oldest row waiting.'),
  gw_log_store_away: gaugeOf('1 while rows go straight to the spool.'),
  gw_log_spool_bytes: gaugeOf('Size of the spool.'),
  gw_log_spool_limit_bytes: gaugeOf('Size at which the spool is full.'),
  gw_pressure_ratio: gaugeOf(
    'How much of its limit a resource uses (1: all of it): event_loop_delay, heap, memory (of the whole process), body_bytes (room for bodies), answer_bytes (room for answers of vendors, of the large or the small ones); requests, or such answers, are refused from 1 on.',
    'resource',
  ),
  gw_budget_users: gaugeOf(
    'Users whom this replica served in the last hour and who spent so many percent of a budget, in the day or month that is current. Replicas share users: use max.',
    'period',
    'share',
  ),

  // Postgres, Redis and keys: wiring/watch-stores.ts.
  gw_log_partitions_kept_timestamp_seconds: gaugeOf(
    'When this replica last made and dropped weeks of the request log, which it tries hourly; 0: not yet. One does it for all: use max. Absent without a database.',
  ),
  gw_sealed_keys: gaugeOf(
    'Provider keys by the sealing key they lie under, counted once a minute: active, retired, and missing (not configured, kid _missing). Every pod counts the same: use max.',
    'kid',
    'state',
  ),
  gw_key_changes_listening: gaugeOf(
    '1 while key changes made by other replicas are received, or there is no database to receive them from.',
  ),
  gw_redis_up: gaugeOf('1 while the shared cache answers, or none is configured.'),
  gw_cache_errors_total: countOf('Operations of the shared cache that failed; each was a miss.'),
  gw_cache_unstored_total: countOf(
    'Answers that the shared cache did not take: their users have stored enough (cache_user_bytes), or too many long ones were on the way.',
  ),
  gw_db_pool_connections: gaugeOf(
    'Connections to Postgres by what they do; of the pools main, query (logs and statistics), log (the writer), operators and spend (the admin API).',
    'pool',
    'state',
  ),
  gw_db_pool_waiting: gaugeOf('Callers waiting for a connection.', 'pool'),
  gw_db_pool_max: gaugeOf('Most connections of a pool.', 'pool'),

  gw_metrics_dropped_labels_total: countOf(
    'Label sets that are counted together as _other because their family was full.',
  ),
} as const;
