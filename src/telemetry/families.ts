import {
  byteBuckets,
  durationBuckets,
  operationBuckets,
  overheadBuckets,
  queryBuckets,
  tokenBuckets,
  tokenRateBuckets,
} from './buckets.ts';
import type { CounterFamily, HistogramFamily } from './family.ts';
import { countOf, gaugeOf } from './family.ts';

/**
 * Every metric family of the gateway: name, kind, help, labels and the most label sets; `npm run generate` makes
 * the table of `docs/telemetry.md` of them. Label values come from closed lists, which stand beside their types.
 *
 * Conventions: https://prometheus.io/docs/practices/naming/ for names and units. `gen_ai_*` are those of
 * https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics/ and `http_server_*` those of
 * https://opentelemetry.io/docs/specs/semconv/http/http-metrics/, written as
 * https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/ says.
 */

/**
 * Label sets of one family; further ones share a series, so that sums stay exact. The largest closed list is that of
 * `gw_requests_total`: 28 models of modes and overrides, times 9 ends, 2 forms and 2 uses of the cache, make 1,008 with
 * the shipped tables, and operators add models. A label set of a counter is one line of a scrape, that of a histogram
 * one a bucket.
 */
const maxCounterSeries = 4_000;
const maxHistogramSeries = 400;

function counter<const Labels extends readonly string[]>(
  help: string,
  ...labels: Labels
): CounterFamily<Labels> {
  return { kind: 'counter', help, labels, maxSeries: maxCounterSeries };
}

function histogram<const Labels extends readonly string[]>(
  help: string,
  buckets: readonly number[],
  ...labels: Labels
): HistogramFamily<Labels> {
  return { kind: 'histogram', help, labels, maxSeries: maxHistogramSeries, buckets };
}

const byModel = ['mode', 'provider', 'model'] as const;
const genAiModel = ['gen_ai_provider_name', 'gen_ai_request_model'] as const;

export const metricFamilies = {
  // Requests of the API port, all routes: http-metrics.ts.
  http_server_request_duration_seconds: histogram(
    'Requests of the API port from their headers to the last byte; 499: the client left before an answer; gw_upstream is user_server where a server that its user named was to answer, but for a 500, and else empty.',
    durationBuckets,
    'http_route',
    'http_request_method',
    'http_response_status_code',
    'gw_upstream',
  ),
  gw_shed_requests_total: counter(
    'Requests refused because of overload, by what was short: event_loop_delay, heap, body_bytes (room for bodies), connections (closed as they came).',
    'resource',
  ),
  gw_stalled_readers_total: counter(
    'Connections closed because their clients took nothing of an answer for 30 s, or made room for other unread answers.',
  ),
  gw_legacy_use_total: counter(
    'Requests that used a name from before the rename, by where: key, mode, header.',
    'surface',
  ),
  gw_auth_failures_total: counter(
    'Callers who were not let in (401), by why: missing, malformed, unknown_key, registration_token.',
    'reason',
  ),

  // The story as a whole: chat-metrics.ts.
  gw_requests_total: counter(
    'Chat requests by how they ended; outcome is success, client_closed, incomplete or the error type.',
    ...byModel,
    'outcome',
    'stream',
    'cache',
  ),
  gw_request_duration_seconds: histogram(
    'Chat requests from the headers to the settlement.',
    durationBuckets,
    'mode',
  ),
  gw_fallbacks_total: counter(
    'Moves to the next candidate.',
    ...(['mode', 'from_provider', 'to_provider', 'reason'] as const),
  ),
  gw_candidates_skipped_total: counter(
    'Candidates passed over or moved back before anything was tried, by reason.',
    'provider',
    'reason',
  ),
  gw_streams_total: counter(
    'Streams from a provider by how they ended: complete, upstream_error, idle_timeout (the vendor fell silent), client_abort, drain_cut; replays from the cache are not counted.',
    'end',
  ),
  gw_stream_client_backpressure_seconds_total: counter(
    'Time for which slow clients held their upstreams back.',
  ),
  gw_cache_requests_total: counter(
    'Cache look-ups: hit, miss, bypass (the client did not opt in).',
    'result',
  ),
  gw_tokens_total: counter(
    'Tokens by class; cached_input and reasoning are parts of input and output.',
    ...byModel,
    'type',
  ),
  gw_cost_microusd_total: counter(
    'Whole micro-dollars; equals the sum of cost_usd in the request logs.',
    ...byModel,
  ),
  gw_cache_saved_microusd_total: counter(
    'What cache hits would have cost, by the model that had answered.',
    ...byModel,
  ),

  // Upstream attempts: attempt-metrics.ts.
  gen_ai_client_operation_duration_seconds: histogram(
    'Upstream attempts up to their last byte, one observation each; error_type is empty when it served.',
    durationBuckets,
    'gen_ai_operation_name',
    ...genAiModel,
    'error_type',
  ),
  gen_ai_client_operation_time_to_first_chunk_seconds: histogram(
    'Time from the start of a streamed attempt to its first token.',
    durationBuckets,
    ...genAiModel,
  ),
  gen_ai_client_token_usage: histogram(
    'Tokens of one answer by type.',
    tokenBuckets,
    'gen_ai_operation_name',
    ...genAiModel,
    'gen_ai_token_type',
  ),
  gw_output_tokens_per_second: histogram(
    'Output tokens over the time from the first token to the last byte; streams that took at least 50 ms.',
    tokenRateBuckets,
    'provider',
    'model',
  ),
  gw_unpriced_responses_total: counter(
    'Answers, cut and abandoned ones included, whose cost is shown as 0 or in part, by why: no_price, no_usage, partial_usage, self_hosted.',
    'provider',
    'model',
    'reason',
  ),
  gw_overhead_seconds: histogram(
    "Our own time: before_upstream from the headers (body included) to the first attempt where no cache was asked, first_byte_relay from the read with a stream's first token to its write, after_last_byte until the log row is kept.",
    overheadBuckets,
    'phase',
  ),

  // Cache, keys and Postgres: store-metrics.ts.
  gw_cache_operation_seconds: histogram(
    'Operations of the answer cache, sealing included.',
    operationBuckets,
    'op',
  ),
  gw_cache_entry_bytes: histogram('Size of the answers that were stored.', byteBuckets),
  gw_key_unseal_seconds: histogram('Opening a sealed provider key.', operationBuckets),
  gw_db_query_seconds: histogram(
    'Work of Postgres by what was asked, the wait for a connection included, failures too.',
    queryBuckets,
    'query',
  ),
  gw_log_flush_seconds: histogram('One group commit of log rows, failed ones included.', queryBuckets),

  // Numbers that others own: wiring/watch-gauges.ts.
  gw_build_info: gaugeOf('What is running; always 1.', 'version', 'node'),
  gw_inflight_requests: gaugeOf('Chat requests under way.'),
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
  gw_log_rows_bad_total: countOf('Spool lines that Postgres refuses.'),
  gw_log_rows_printed_total: countOf('Log rows printed because no store took them, or at the end.'),
  gw_log_queue_depth: gaugeOf('Log rows waiting.'),
  gw_log_oldest_row_age_seconds: gaugeOf('Age of the oldest row waiting.'),
  gw_log_store_away: gaugeOf('1 while rows go straight to the spool.'),
  gw_log_spool_bytes: gaugeOf('Size of the spool.'),
  gw_log_spool_limit_bytes: gaugeOf('Size at which the spool is full.'),
  gw_pressure_ratio: gaugeOf(
    'How much of its limit a resource uses (1: all of it): event_loop_delay, heap, body_bytes (room for bodies), answer_bytes (room for large answers of vendors); requests, or such answers, are refused from 1 on.',
    'resource',
  ),

  // The same, of Postgres and Redis: wiring/watch-stores.ts.
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
  gw_db_pool_connections: gaugeOf(
    'Connections to Postgres by what they do; of the pools main, query (logs and statistics) and log (the writer).',
    'pool',
    'state',
  ),
  gw_db_pool_waiting: gaugeOf('Callers waiting for a connection.', 'pool'),
  gw_db_pool_max: gaugeOf('Most connections of a pool.', 'pool'),

  gw_metrics_dropped_labels_total: countOf(
    'Label sets that are counted together as _other because their family was full.',
  ),
} as const;

type MetricFamilies = typeof metricFamilies;
export type FamilyName = keyof MetricFamilies;

/** The names of the families of a kind. */
export type FamilyNameOf<Kind extends MetricFamilies[FamilyName]['kind']> = {
  [Name in FamilyName]: MetricFamilies[Name]['kind'] extends Kind ? Name : never;
}[FamilyName];

/** The names of a family's labels, in order. */
export type LabelsOf<Name extends FamilyName> = MetricFamilies[Name]['labels'];
