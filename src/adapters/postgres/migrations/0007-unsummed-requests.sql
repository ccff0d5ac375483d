-- Sums by the period instead of by the batch: each batch of log rows leaves what is to be summed here, an append without
-- an index, and a statement every few seconds moves it into request_rollups. Statistics read both.

CREATE TABLE unsummed_requests (
  user_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  provider text NOT NULL,
  -- As it is summed: _other where it is not told apart.
  model text NOT NULL,
  mode text NOT NULL,
  status text NOT NULL,
  cache_hit boolean NOT NULL,
  latency_ms integer NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cost_micro_usd bigint NOT NULL,
  saved_micro_usd bigint NOT NULL
) WITH (
  -- Rows live for seconds: vacuum by their number, not by the share of a table that is small.
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 10000
);

-- What the gateway sends of a new row in binary form. Never alter it, releases that run side by side share it: a change
-- needs a type of another name.
CREATE TYPE new_log_row AS (
  created_at timestamptz,
  is_other boolean,
  row_id uuid,
  user_id uuid,
  request_id text,
  mode text,
  provider text,
  model text,
  key_id uuid,
  usage_reported boolean,
  usage_basis text,
  input_tokens bigint,
  output_tokens bigint,
  cached_input_tokens bigint,
  cache_write_tokens bigint,
  cache_write_long_tokens bigint,
  reasoning_tokens bigint,
  latency_ms integer,
  ttft_ms integer,
  cost_micro_usd bigint,
  saved_micro_usd bigint,
  cache_hit boolean,
  stream boolean,
  status text,
  error text,
  residency_requested text,
  residency_actual text,
  attempts jsonb,
  candidates jsonb,
  price jsonb,
  cache jsonb,
  tables_version text,
  trace_id text
);
