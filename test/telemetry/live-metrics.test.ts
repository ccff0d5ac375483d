/** Metrics of a running gateway against its own log rows and its vendors' ledgers. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chat, chatOk } from '../support/chat.ts';
import { httpClient } from '../support/http-client.ts';
import type { User } from '../support/register.ts';
import type { GatewayUnderTest } from '../support/start-gateway.ts';
import { failure } from '../support/vendor-plans.ts';
import type { LogPage } from '../support/wire-types.ts';
import { scrape, startExercisedGateway } from './exercised-gateway.ts';
import { sumOf } from './exposition.ts';
import type { OtlpReceiver } from './otlp-receiver.ts';
import { startOtlpReceiver } from './otlp-receiver.ts';

let collector: OtlpReceiver;
let gateway: GatewayUnderTest;
let user: User;

beforeAll(async () => {
  collector = await startOtlpReceiver();
  ({ gateway, user } = await startExercisedGateway(collector.env));
}, 60_000);

afterAll(async () => {
  await gateway?.stop();
  await collector?.close();
});

const microUsd = (text: string) => Number(text.replace('.', ''));

describe('counters', () => {
  test('of money and tokens equal the log rows, to the micro-dollar', async () => {
    for (let round = 0; round < 5; round += 1) await chatOk(user.client);
    const { data } = (await user.client.get('/v1/logs?limit=1000')).json<LogPage>();
    const exposition = await scrape(gateway);
    const served = data.filter((row) => !row.cache_hit);
    const sum = (read: (row: (typeof data)[number]) => number) =>
      served.reduce((total, row) => total + read(row), 0);
    expect(sumOf(exposition, 'gw_cost_microusd_total')).toBe(sum((row) => microUsd(row.cost_usd)));
    expect(sum((row) => microUsd(row.cost_usd))).toBeGreaterThan(200);
    expect(sumOf(exposition, 'gw_tokens_total', { type: 'input' })).toBe(sum((row) => row.input_tokens));
    expect(sumOf(exposition, 'gw_tokens_total', { type: 'output' })).toBe(sum((row) => row.output_tokens));
    expect(sumOf(exposition, 'gw_requests_total')).toBe(data.length);
    expect(sumOf(exposition, 'gw_log_rows_accepted_total')).toBe(data.length);
    expect(sumOf(exposition, 'gw_cache_saved_microusd_total')).toBe(46);
  });

  test('of attempts and fallbacks equal what the vendors saw', async () => {
    const before = await scrape(gateway);
    gateway.vendors.clear();
    gateway.vendors.openai.always(failure(503));
    for (let round = 0; round < 3; round += 1) await chat(user.client);
    const after = await scrape(gateway);
    const grown = (name: string, labels: Record<string, string> = {}) =>
      sumOf(after, name, labels) - sumOf(before, name, labels);
    expect(grown('gen_ai_client_operation_duration_seconds_count')).toBe(gateway.vendors.ledger().length);
    expect(grown('gw_fallbacks_total')).toBe(3);
    expect(
      grown('gw_fallbacks_total', {
        from_provider: 'openai',
        to_provider: 'sarvam',
        reason: 'upstream-failed',
      }),
    ).toBe(3);
    expect(grown('gw_overhead_seconds_count', { phase: 'before_upstream' })).toBe(3);
    gateway.vendors.clear();
  });
});

test('a scrape is OpenMetrics, whole, with exemplars that lead to traces that exist', async () => {
  const { headers, text } = await httpClient(gateway.adminUrl).get('/metrics');
  expect(headers['content-type']).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
  expect(text.endsWith('# EOF\n')).toBe(true);
  const exposition = await scrape(gateway);
  const seen = new Set(exposition.series.map(({ name, labels }) => `${name}${JSON.stringify(labels)}`));
  expect(seen.size).toBe(exposition.series.length);
  const exemplars = exposition.series.flatMap(({ exemplar }) => (exemplar === null ? [] : [exemplar]));
  expect(exemplars.length).toBeGreaterThan(5);
  for (const traceId of new Set(exemplars))
    expect(await collector.trace(traceId, 1), traceId).not.toEqual([]);
  expect(exposition.series.length).toBeLessThan(5_000);
});

test('metrics name no user, key, request or address', async () => {
  const { text } = await httpClient(gateway.adminUrl).get('/metrics');
  for (const secret of [user.id, user.email, user.key, 'sk-', '127.0.0.1', 'unknown-to-the-tables'])
    expect(text).not.toContain(secret);
});
