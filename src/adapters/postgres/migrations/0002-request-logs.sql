-- One row per settled chat request, partitioned by week of created_at so that retention drops whole
-- partitions. The gateway creates partitions ahead; the default one catches what none was made for.

CREATE SEQUENCE request_log_ids AS bigint;

CREATE TABLE request_logs (
  id bigint NOT NULL DEFAULT nextval('request_log_ids'),
  -- Made by the gateway. (created_at, row_id) makes replays insert once.
  row_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  -- No foreign key: its check would cost every request, and rows outlive nothing they refer to.
  user_id uuid NOT NULL,
  request_id text NOT NULL,
  mode text NOT NULL,
  provider text NOT NULL,
  model text NOT NULL,
  usage_reported boolean NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cached_input_tokens bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  cache_write_long_tokens bigint NOT NULL,
  reasoning_tokens bigint NOT NULL,
  latency_ms integer NOT NULL,
  ttft_ms integer,
  cost_micro_usd bigint NOT NULL,
  saved_micro_usd bigint NOT NULL,
  cache_hit boolean NOT NULL,
  stream boolean NOT NULL,
  status text NOT NULL,
  error text,
  residency_requested text,
  residency_actual text NOT NULL,
  attempts jsonb NOT NULL,
  tables_version text NOT NULL,
  trace_id text,
  PRIMARY KEY (created_at, row_id)
) PARTITION BY RANGE (created_at);

-- The page of GET /v1/logs.
CREATE INDEX request_logs_by_user ON request_logs (user_id, created_at DESC, id DESC);

CREATE TABLE request_logs_default PARTITION OF request_logs DEFAULT;

-- Hourly sums for GET /v1/stats, written by the statement that inserts the rows. `lane` spreads writers
-- that would otherwise wait for each other's row lock; readers add the lanes up.
CREATE TABLE request_rollups (
  user_id uuid NOT NULL,
  hour timestamptz NOT NULL,
  provider text NOT NULL,
  model text NOT NULL,
  mode text NOT NULL,
  lane smallint NOT NULL,
  requests bigint NOT NULL,
  successes bigint NOT NULL,
  cache_hits bigint NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cost_micro_usd numeric(38) NOT NULL,
  saved_micro_usd numeric(38) NOT NULL,
  -- Requests per latency class; the bounds live in the gateway (latency-buckets.ts) and never change.
  latency_buckets bigint[] NOT NULL,
  PRIMARY KEY (user_id, hour, provider, model, mode, lane)
) WITH (fillfactor = 60); -- rows are updated many times within their hour: leave room on the page

CREATE INDEX request_rollups_by_hour ON request_rollups (hour);
