import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestDatabase } from '../harness/servers/postgres.ts';
import { createDatabase } from '../harness/servers/postgres.ts';
import { runOnDatabase } from './run-command.ts';

const [userId, keyId] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];

let database: TestDatabase;

const rows = `
  (1, '2026-11-10T10:00:00Z', 'openai', 'gpt-a', 100, 10, 1250, false, 'global'),
  (2, '2026-11-10T10:59:59.999999Z', 'openai', 'gpt-a', 200, 20, 2500, false, 'global'),
  (3, '2026-11-10T10:30:00Z', 'sarvam', 'sarvam-a', 5, 5, 1, false, 'india'),
  (4, '2026-11-10T11:00:00Z', 'openai', '=1+1,"x"', 1, 1, 7, false, 'global'),
  (5, '2026-11-10T11:00:01Z', 'cache', 'openai:gpt-a', 100, 10, 0, true, 'cache'),
  (6, '2026-11-10T11:00:02Z', 'none', 'none', 0, 0, 0, false, 'global'),
  (7, '2026-11-11T00:00:00Z', 'openai', 'gpt-a', 9, 9, 9, false, 'global')`;

beforeAll(async () => {
  database = await createDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(
    `INSERT INTO request_logs (id, row_id, created_at, user_id, key_id, request_id, mode, provider, model,
       usage_reported, usage_basis, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens,
       cache_write_long_tokens, reasoning_tokens, latency_ms, cost_micro_usd, saved_micro_usd, cache_hit, stream,
       status, residency_actual, attempts, tables_version)
     SELECT id, gen_random_uuid(), at::timestamptz, $1, CASE WHEN provider = 'openai' THEN $2::uuid END, 'r-' || id,
       'gw/cheap', provider, model, true, 'complete', input, output, 0, 0, 0, 0, 12, cost, 0, hit, false, 'success',
       residency, '[]', 'v'
     FROM (VALUES ${rows}) AS t (id, at, provider, model, input, output, cost, hit, residency)`,
    [userId, keyId],
  );
  await client.end();
});
afterAll(() => database?.drop());

const exported = (format: string, ...args: readonly string[]) =>
  runOnDatabase(database, [
    ...['export', '--format', format, '--from', '2026-11-10', '--to', '2026-11-11'],
    ...args,
  ]);

/** What FOCUS 1.2 calls mandatory. */
const mandatory = [
  ...['BilledCost', 'BillingAccountId', 'BillingAccountName', 'BillingCurrency', 'BillingPeriodEnd'],
  ...['BillingPeriodStart', 'ChargeCategory', 'ChargeClass', 'ChargeDescription', 'ChargePeriodEnd'],
  ...['ChargePeriodStart', 'ContractedCost', 'EffectiveCost', 'InvoiceIssuerName', 'ListCost'],
  ...['PricingQuantity', 'PricingUnit', 'ProviderName', 'PublisherName', 'ServiceCategory', 'ServiceName'],
];

describe('focus', () => {
  test('is hourly charges with every mandatory column, which add up to the rows', async () => {
    const { code, stdout, stderr } = await exported('focus');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [head = '', ...lines] = stdout.trimEnd().split('\r\n');
    const names = head.split(',');
    expect(names).toEqual(expect.arrayContaining(mandatory));
    // The model of the last one holds a comma.
    const charges = lines.slice(0, 2).map((line) => {
      const cells = line.split(',');
      return Object.fromEntries(names.map((name, index) => [name, cells[index]]));
    });
    expect(lines).toHaveLength(3);
    expect(charges[0]).toMatchObject({
      BilledCost: '0.003750',
      EffectiveCost: '0.003750',
      BillingAccountId: userId,
      SubAccountId: keyId,
      BillingPeriodStart: '2026-11-01T00:00:00Z',
      BillingPeriodEnd: '2026-12-01T00:00:00Z',
      ChargePeriodStart: '2026-11-10T10:00:00Z',
      ChargePeriodEnd: '2026-11-10T11:00:00Z',
      ChargeCategory: 'Usage',
      ChargeClass: '',
      PricingQuantity: '330',
      ConsumedUnit: 'Tokens',
      ProviderName: 'openai',
      ServiceCategory: 'AI and Machine Learning',
      x_Model: 'gpt-a',
      x_Requests: '2',
      x_InputTokens: '300',
    });
    expect(charges[1]).toMatchObject({ BilledCost: '0.000001', SubAccountId: '', x_Residency: 'india' });
    expect(lines[2]).toMatch(/^0\.000007,.*,"'=1\+1,""x""",/);
  });
});

test('csv is every row, safe to open', async () => {
  const { code, stdout } = await exported('csv');
  expect(code).toBe(0);
  const [head, ...lines] = stdout.trimEnd().split('\r\n');
  expect(head).toMatch(/^created_at,id,user_id,.*,cost_usd,saved_usd$/);
  expect(lines).toHaveLength(6);
  expect(lines[0]).toMatch(/^2026-11-10T10:00:00\.000000Z,1,/);
  expect(lines[3]).toContain(`,"'=1+1,""x""",`);
});

test('ndjson is every row, in order', async () => {
  const { code, stdout } = await exported('ndjson');
  expect(code).toBe(0);
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: number });
  expect(lines.map(({ id }) => id)).toEqual([1, 3, 2, 4, 5, 6]);
  expect(lines[3]).toMatchObject({
    created_at: '2026-11-10T11:00:00.000000Z',
    user_id: userId,
    key_id: keyId,
    model: '=1+1,"x"',
    input_tokens: 1,
    cost_usd: '0.000007',
    ttft_ms: null,
  });
});

test.each<[args: readonly string[], said: RegExp]>([
  [['--format', 'xml', '--from', '1d'], /Allowed choices are focus, csv, ndjson/],
  [['--from', '1d'], /required option '--format <format>'/],
  [['--format', 'csv'], /required option '--from <time>'/],
  [['--format', 'csv', '--from', '2026-11-10', '--to', '2026-11-10'], /ends before it begins/],
])('%j is named as a mistake', async (args, said) => {
  const { code, stderr } = await runOnDatabase(database, ['export', ...args]);
  expect(code).toBe(64);
  expect(stderr).toMatch(said);
});

test('an empty period is an empty file', async () => {
  const { code, stdout } = await runOnDatabase(database, ['export', '--format', 'focus', '--from', '1h']);
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
});
