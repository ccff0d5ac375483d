import { latencyBoundsMs, latencyBucketCount } from './latency-buckets.ts';

/** The columns of `request_rollups` that add up, and what requests come to in each. */
const sums = {
  requests: 'count(*)',
  successes: "count(*) FILTER (WHERE status = 'success')",
  cache_hits: 'count(*) FILTER (WHERE cache_hit)',
  input_tokens: 'sum(input_tokens)',
  output_tokens: 'sum(output_tokens)',
  cost_micro_usd: 'sum(cost_micro_usd)',
  saved_micro_usd: 'sum(saved_micro_usd)',
} as const;

export type SummedColumn = keyof typeof sums;
export const summedColumns = Object.keys(sums) as readonly SummedColumn[];

/** What a request is summed by. */
export const rollupKey = 'user_id, hour, provider, model, mode';

/** What `unsummed_requests` keeps of a request: all that its sums are made of. */
export const unsummedColumns = [
  ...['user_id', 'created_at', 'provider', 'model', 'mode', 'status', 'cache_hit', 'latency_ms'],
  ...['input_tokens', 'output_tokens', 'cost_micro_usd', 'saved_micro_usd'],
];

const buckets = Array.from(
  { length: latencyBucketCount },
  (_, index) => `count(*) FILTER (WHERE bucket = ${index})`,
).join(', ');

/** Sums of requests by key, with the columns of `request_rollups`. `source`: what stands behind FROM. */
export function rollupsOf(source: string): string {
  return `
  SELECT ${rollupKey}, ${summedColumns.map((name) => `${sums[name]} AS ${name}`).join(', ')},
    ARRAY[${buckets}] AS latency_buckets
  FROM (
    SELECT *, date_trunc('hour', created_at, 'UTC') AS hour,
      width_bucket(latency_ms, ARRAY[${latencyBoundsMs}]) AS bucket
    FROM ${source}
  ) AS requests
  GROUP BY ${rollupKey}`;
}
