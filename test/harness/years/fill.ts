import type pg from 'pg';
import { maintainPartitions } from '../../../src/adapters/postgres/partitions.ts';
import { rollupKey, rollupsOf, summedColumns } from '../../../src/adapters/postgres/rollup-sums.ts';

/** Rows as requests leave them, spread evenly over the weeks before now; users take them by a skew. */

export const weekMs = 7 * 86_400_000;
/** Partitions are made for as many weeks at a time. */
const weeksAtOnce = 5;
/** Nothing is dropped while rows are filled in. */
const keepAllDays = 36_500;
/** The lane of the sums that the gateway's own statement writes. */
const lane = -1;

export interface Years {
  readonly weeks: number;
  /** The first has most: user k has its share in 1/k. */
  readonly users: number;
  readonly nowMs: number;
}

/** The id of user `number`, from 1; the same in every run. */
export function userId(number: number): string {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
}

function instant(atMs: number): string {
  return new Date(atMs).toISOString();
}

function startMs({ nowMs, weeks }: Years): number {
  return nowMs - weeks * weekMs;
}

/** Makes the users and the partitions of all weeks. */
export async function prepareYears(pool: pg.Pool, years: Years): Promise<void> {
  await pool.query(
    `INSERT INTO users (id, email, email_folded)
     SELECT ${userOf('k')}, 'user-' || k || '@example.com', 'user-' || k || '@example.com'
     FROM generate_series(1, ${years.users}) AS k`,
  );
  for (let week = 0; week <= years.weeks + weeksAtOnce; week += weeksAtOnce)
    await maintainPartitions(pool, { retentionDays: keepAllDays, nowMs: startMs(years) + week * weekMs });
}

function userOf(number: string): string {
  return `('00000000-0000-4000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`;
}

/** What one row in a statement of rows is made of; `i` is its number, `at` its moment, `k` its user. */
const columns: Readonly<Record<string, string>> = {
  row_id: 'gen_random_uuid()',
  created_at: 'at',
  user_id: userOf('k'),
  request_id: 'gen_random_uuid()::text',
  mode: `(ARRAY['gw/balanced', 'gw/cheap', 'gw/premium'])[1 + i % 3]`,
  provider: `(ARRAY['openai', 'anthropic', 'sarvam', 'together'])[1 + i / 3 % 4]`,
  model: `(ARRAY['gpt-6', 'claude-sonnet-5', 'sarvam-105b', 'meta-llama/Llama-4'])[1 + i / 3 % 4]`,
  key_id: userOf('k'),
  usage_reported: 'true',
  usage_basis: `'complete'`,
  input_tokens: '200 + i % 1800',
  output_tokens: '50 + i % 700',
  cached_input_tokens: '0',
  cache_write_tokens: '0',
  cache_write_long_tokens: '0',
  reasoning_tokens: '0',
  latency_ms: '(300 + 4000 * random() * random())::integer',
  ttft_ms: 'NULL',
  cost_micro_usd: '100 + i % 9000',
  saved_micro_usd: '0',
  cache_hit: 'false',
  stream: 'i % 2 = 0',
  status: `CASE WHEN i % 50 = 0 THEN 'error' ELSE 'success' END`,
  error: `CASE WHEN i % 50 = 0 THEN 'provider_error: every candidate failed' END`,
  residency_actual: `'global'`,
  attempts: `('[{"end": "served", "model": "gpt-6", "key_id": "' || gen_random_uuid() || '", "reason": null, "status": 200, '
    || '"provider": "openai", "residency": "global", "latency_ms": ' || i % 4000 || ', "address_class": "public"}]')::jsonb`,
  candidates: `'[{"fate": "tried", "model": "gpt-6", "provider": "openai"},
    {"fate": "not_reached", "model": "sarvam-105b", "provider": "sarvam"},
    {"fate": "not_reached", "model": "claude-sonnet-5", "provider": "anthropic"}]'::jsonb`,
  price: `'{"model": "gpt-6", "provider": "openai", "rates": {"input": "2.50", "output": "10.00", "cached_input": "1.25"}}'::jsonb`,
  tables_version: `'0123456789abcdef'`,
  trace_id: `replace(gen_random_uuid()::text, '-', '')`,
};

/** Numbers of rows; the end is not one of them. */
export interface Numbers {
  readonly from: number;
  readonly to: number;
}

/** Adds the rows `part` of `whole`, which lies evenly over all weeks. */
export async function fillRows(pool: pg.Pool, years: Years, part: Numbers, whole: Numbers): Promise<void> {
  const seconds = (years.weeks * weekMs) / 1000 / (whole.to - whole.from);
  await pool.query(
    `INSERT INTO request_logs (${Object.keys(columns)}) SELECT ${Object.values(columns)} FROM (
       SELECT i, $1::timestamptz + (i - $2::bigint) * $3::double precision * interval '1 second' AS at,
         floor(power(${years.users}::double precision, random()))::bigint AS k
       FROM generate_series($4::bigint, $5::bigint - 1) AS i) AS made`,
    [instant(startMs(years)), whole.from, seconds, part.from, part.to],
  );
}

/** Sums up all rows anew, a week at a time, as the gateway had summed them up when they came. */
export async function sumUpAnew(pool: pg.Pool, years: Years): Promise<void> {
  await pool.query('TRUNCATE request_rollups, unsummed_requests');
  for (let atMs = startMs(years); atMs < years.nowMs + weekMs; atMs += weekMs) {
    const [from, to] = [atMs, atMs + weekMs].map((ms) => `date_trunc('hour', '${instant(ms)}'::timestamptz)`);
    const names = `${rollupKey}, ${summedColumns}, latency_buckets`;
    await pool.query(
      `INSERT INTO request_rollups (${names}, lane) SELECT ${names}, ${lane}
       FROM (${rollupsOf(`request_logs WHERE created_at >= ${from} AND created_at < ${to}`)}) AS sums`,
    );
  }
}
