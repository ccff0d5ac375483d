import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tables } from '../harness/gateway/tables.ts';
import type { TestDatabase } from '../harness/servers/postgres.ts';
import { createDatabase } from '../harness/servers/postgres.ts';
import type { Ended } from './run-command.ts';
import { runCommand, runOnDatabase } from './run-command.ts';

let folder: string;
let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reprice-'));
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
  await rm(folder, { recursive: true });
});

interface Rows {
  readonly provider: string;
  readonly model: string;
  readonly count?: number;
  readonly input?: number;
  readonly cost?: number;
  readonly basis?: string | null;
  readonly cacheHit?: boolean;
  readonly at?: string;
}

/** Equal rows, a microsecond apart; each has 1,000 input tokens, half of them cached, and 10 output tokens. */
async function insert({ provider, model, count = 1, ...rest }: Rows): Promise<void> {
  const { input = 1000, cost = 0, basis = 'complete', cacheHit = false, at = '2026-11-10T00:00:00Z' } = rest;
  await client.query(
    `INSERT INTO request_logs (row_id, created_at, user_id, request_id, mode, provider, model, usage_reported,
       usage_basis, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, cache_write_long_tokens,
       reasoning_tokens, latency_ms, cost_micro_usd, saved_micro_usd, cache_hit, stream, status, residency_actual,
       attempts, tables_version)
     SELECT gen_random_uuid(), $1::timestamptz + n * interval '1 microsecond', gen_random_uuid(), 'r', 'gw/cheap',
       $2, $3, $4::text IS DISTINCT FROM 'none', $4, $5::bigint, 10, $5::bigint / 2, 0, 0, 0, 1, $6, 0, $7, false,
       'success', 'global', '[]', 'v'
     FROM generate_series(1, $8::integer) AS n`,
    [at, provider, model, basis, input, cost, cacheHit, count],
  );
}

const price = (model: string, input: string, output: string, more: object = {}) =>
  ({ provider: 'openai', model, input, output, ...more }) as const;

async function tablesFile(name: string, prices: readonly object[]): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, JSON.stringify(tables({ prices: prices as never })));
  return path;
}

const reprice = (path: string, ...args: readonly string[]): Promise<Ended> =>
  runOnDatabase(database, ['reprice', '--tables', path, ...args]);

const since = ['--since', '2026-11-10', '--until', '2026-11-11'] as const;

const fingerprint = async (): Promise<unknown> =>
  (
    await client.query(
      `SELECT count(*), md5(string_agg(t::text, '' ORDER BY row_id)) FROM request_logs t
       UNION ALL SELECT count(*), md5(string_agg(t::text, '')) FROM request_rollups t`,
    )
  ).rows;

test('sums what requests cost and would have cost, per provider and model, and writes nothing', async () => {
  // Half of a micro-dollar each: rounded up once per request, as at its settlement.
  await insert({ provider: 'openai', model: 'half', count: 12_001, input: 1, cost: 7 });
  await insert({ provider: 'openai', model: 'gpt-new-2026-11', cost: 5_000, at: '2026-11-10T01:00:00Z' });
  await insert({ provider: 'openai', model: 'gpt-new-2026-11', basis: null, at: '2026-11-10T01:00:01Z' });
  await insert({ provider: 'openai', model: 'gpt-new-2026-11', basis: 'none', at: '2026-11-10T01:00:02Z' });
  await insert({ provider: 'anthropic', model: 'unknown', cost: 40, at: '2026-11-10T01:00:03Z' });
  await insert({ provider: 'cache', model: 'openai:half', cacheHit: true, at: '2026-11-10T01:00:04Z' });
  await insert({ provider: 'none', model: 'none', basis: 'none', at: '2026-11-10T01:00:05Z' });
  await insert({ provider: 'openai', model: 'half', cost: 1, at: '2026-11-09T23:59:59.999998Z' });
  await insert({ provider: 'openai', model: 'half', cost: 1, at: '2026-11-11T00:00:00Z' });
  const before = await fingerprint();
  const path = await tablesFile('new.json', [
    price('half', '0.5', '0'),
    price('gpt-new', '2', '10', { cached_input: '0.2' }),
  ]);
  const { code, stdout, stderr } = await reprice(path, ...since, '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^.*\n$/);
  // 500 tokens at 2, 500 at 0.2 and 10 at 10 micro-dollars.
  const each = 1_000 + 100 + 100;
  expect(JSON.parse(stdout)).toEqual({
    since: '2026-11-10T00:00:00.000000Z',
    until: '2026-11-11T00:00:00.000000Z',
    tables_version: expect.stringMatching(/^[0-9a-f]{16}$/),
    totals: {
      requests: 12_005,
      input_tokens: 12_001 + 4_000,
      output_tokens: 120_050,
      cost_usd: '0.089047',
      repriced_usd: `0.0${12_001 + 2 * each}`,
      difference_usd: `-0.0${89_047 - 12_001 - 2 * each}`,
      unpriced_requests: 1,
    },
    models: [
      expect.objectContaining({
        provider: 'anthropic',
        model: 'unknown',
        requests: 1,
        cost_usd: '0.000040',
        repriced_usd: '0.000000',
        difference_usd: '-0.000040',
        unpriced_requests: 1,
      }),
      expect.objectContaining({
        provider: 'openai',
        model: 'gpt-new-2026-11',
        requests: 3,
        cost_usd: '0.005000',
        repriced_usd: '0.002400',
        unpriced_requests: 0,
      }),
      expect.objectContaining({
        model: 'half',
        requests: 12_001,
        cost_usd: '0.084007',
        repriced_usd: '0.012001',
      }),
    ],
  });
  expect(await fingerprint()).toEqual(before);
});

test('shows the same as a table', async () => {
  const path = await tablesFile('table.json', [price('half', '7', '0')]);
  const { code, stdout } = await reprice(path, ...since);
  expect(code).toBe(0);
  const [head, ...lines] = stdout.trimEnd().split('\n');
  expect(head).toMatch(/^provider +model +requests +cost +repriced +difference +unpriced$/);
  expect(lines.at(-2)).toMatch(/^openai +half +12001 +0\.084007 +0\.084007 +0\.000000 +0$/);
  expect(lines.at(-1)).toMatch(/^total +12005 +/);
});

test('reads back from now', async () => {
  const path = await tablesFile('ago.json', [price('half', '1', '1')]);
  const { code, stdout } = await reprice(path, '--since', '1h', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ totals: { requests: 0, cost_usd: '0.000000' }, models: [] });
});

test.each<[name: string, args: readonly string[], code: number, said: RegExp]>([
  ['no period', [], 64, /required option '--since <time>'/],
  ['a time without a zone', ['--since', '2026-11-10T00:00:00'], 64, /a time with its zone/],
  ['a day that is none', ['--since', '2026-02-30'], 64, /a time with its zone/],
  [
    'an end before the beginning',
    ['--since', '2026-11-10', '--until', '2026-11-09'],
    64,
    /ends before it begins/,
  ],
])('with %s nothing is read', async (_name, args, code, said) => {
  const ended = await reprice(await tablesFile('any.json', []), ...args);
  expect(ended.code).toBe(code);
  expect(ended.stderr).toMatch(said);
  expect(ended.stdout).toBe('');
});

test('tables that a gateway would not take are refused with the reason', async () => {
  const path = join(folder, 'bad.json');
  await writeFile(path, '{"tiers": 3}');
  const { code, stderr } = await reprice(path, ...since);
  expect(code).toBe(1);
  expect(stderr).toMatch(/bad\.json is not usable: tiers: /);
});

test('a database that is away says so', async () => {
  const path = await tablesFile('away.json', []);
  const { code } = await runCommand(['reprice', '--tables', path, ...since], {
    DATABASE_URL: 'postgres://127.0.0.1:1/none',
  });
  expect(code).toBe(69);
});
