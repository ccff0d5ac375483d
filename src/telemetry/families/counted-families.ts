import { keyVerdicts } from '../../core/account/key-verdict.ts';
import { refusingLimits } from '../../core/limits/limit-table.ts';
import { authFailures, legacySurfaces } from '../../http/http-telemetry.ts';
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

/** What is counted as it happens, with the file that counts it. */
export const countedFamilies = {
  // Requests of the API port, all routes: http-metrics.ts.
  http_server_request_duration_seconds: histogram(
    'Requests of the API port from their headers to the last byte; 499: the client left before an answer; gw_upstream is user_server where a server that its user named was to answer, user_key where every provider rejected the key that its user stored, but for a 500, and else empty.',
    durationBuckets,
    'http_route',
    'http_request_method',
    'http_response_status_code',
    'gw_upstream',
  ),
  gw_shed_requests_total: counter(
    'Requests refused because of overload, by what was short: event_loop_delay, heap, memory (of the whole process), body_bytes (room for bodies), connections (closed as they came), user_share (one user has as many chat requests under way as others leave), other (what none of these names).',
    'resource',
  ),
  gw_stalled_readers_total: counter(
    'Connections closed because their clients took nothing of a whole answer for 30 s, or made room for other unread answers. An open stream has 60 s, and is a `client_abort` of gw_streams_total.',
  ),
  gw_legacy_use_total: counter(
    `Requests that used a name from before the rename, by where: ${legacySurfaces.join(', ')}.`,
    'surface',
  ),
  gw_auth_failures_total: counter(
    `Callers who were not let in, by why: ${authFailures.join(', ')}.`,
    'reason',
  ),
  gw_admin_requests_total: counter(
    'Requests of the admin API; 401: no admin token or a wrong one, 429: too many wrong ones from there.',
    'http_route',
    'http_request_method',
    'http_response_status_code',
  ),
  gw_key_checks_total: counter(
    `Provider keys whose owner had them checked, by what their server makes of them: ${keyVerdicts.join(', ')}.`,
    'provider',
    'verdict',
  ),
  gw_limit_refusals_total: counter(
    `Chat requests beyond a limit of their user, by which: ${refusingLimits.join(', ')}.`,
    'limit',
  ),
  gw_limit_store_total: counter(
    'Requests of users with limits by who decided: shared (Redis, for all replicas), or this replica alone, since Redis was away (unsent) or did not answer in time (unanswered); none without Redis.',
    'result',
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
    'Cache look-ups: hit, miss, bypass (nothing was looked up, or what was found was not served).',
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
  gw_log_batches_refused_total: counter(
    'Group commits that the fast insert refused, kept by the slow one, which costs Postgres twice as much. A few are normal: values beyond their column, rows that the spool was faster with; where it is as many as gw_log_flush_seconds counts, the fast one is dead: a line on stdout says why.',
  ),
} as const;
