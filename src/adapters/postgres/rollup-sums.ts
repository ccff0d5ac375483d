/** The columns of `request_rollups` that add up, and what the rows of the log come to in each. */
export const rollupSums = {
  requests: 'count(*)',
  successes: "count(*) FILTER (WHERE status = 'success')",
  cache_hits: 'count(*) FILTER (WHERE cache_hit)',
  input_tokens: 'sum(input_tokens)',
  output_tokens: 'sum(output_tokens)',
  cost_micro_usd: 'sum(cost_micro_usd)',
  saved_micro_usd: 'sum(saved_micro_usd)',
} as const;

export type SummedColumn = keyof typeof rollupSums;
export const summedColumns = Object.keys(rollupSums) as readonly SummedColumn[];
