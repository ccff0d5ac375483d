-- By whose word a request had to stay in India: 'deployment', 'user' or 'request'; null where nothing was demanded, and
-- in rows of before. Without a CHECK, which would read all rows under the lock: gateways write words of a closed list.

ALTER TABLE request_logs ADD COLUMN residency_bound_by text;

-- As new_log_row, which gateways of the release before go on with. Never alter it either.
CREATE TYPE new_log_row_with_binder AS (
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
  residency_bound_by text,
  residency_actual text,
  attempts jsonb,
  candidates jsonb,
  price jsonb,
  cache jsonb,
  tables_version text,
  trace_id text
);
