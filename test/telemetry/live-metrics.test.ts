/** Metrics of a running gateway against its own log rows and its vendors' ledgers. */
import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { newServiceKey } from '../../src/core/account/service-key.ts';
import { chat, chatOk, streamed } from '../harness/gateway/chat.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { startOtlpReceiver } from '../harness/servers/otlp-receiver.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { answer, failure } from '../harness/vendors/vendor-plans.ts';
import { gate, heldBy } from '../harness/vendors/vendor-reply.ts';
import type { LogPage } from '../harness/vendors/wire-types.ts';
import { scrape, useExercisedGateway } from './exercised-gateway.ts';
import type { Exposition } from './exposition.ts';
import { sumOf } from './exposition.ts';

const collector = useServer(startOtlpReceiver);
const { gateway, user } = useExercisedGateway(() => collector.env);

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
    const waits = sumOf(exposition, 'gw_overhead_seconds_count', { phase: 'after_last_byte' });
    expect(waits).toBe(data.length);
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

test('10,000 paths and hundreds of models that nobody knows add no series', async () => {
  const sizeOf = ({ series }: Exposition) => {
    const sizes = new Map<string, number>();
    for (const { name } of series) sizes.set(name, (sizes.get(name) ?? 0) + 1);
    return sizes;
  };
  await user.client.get('/no/such/path');
  await chatOk(user.client, {}, { 'x-gateway-override-model': 'openai:unknown' });
  const stranger = httpClient(gateway.url, 'no-key');
  await stranger.get('/v1/models');
  const before = sizeOf(await scrape(gateway));
  for (let round = 0; round < 250; round += 1) {
    await Promise.all([
      ...Array.from({ length: 40 }, () => user.client.get(`/${randomUUID()}/${randomUUID()}`)),
      stranger.get('/v1/models'),
      chatOk(user.client, {}, { 'x-gateway-override-model': `openai:${randomUUID()}` }),
    ]);
  }
  const after = await scrape(gateway);
  const grown = [...sizeOf(after)].filter(([name, size]) => size > (before.get(name) ?? 0));
  expect(grown.map(([name]) => name).filter((name) => !name.startsWith('nodejs_'))).toEqual([]);
  expect(after.series.length).toBeLessThan(5_000);
  expect(sumOf(after, 'gw_metrics_dropped_labels_total')).toBe(0);
});

test('work of the stores and time of our own are observed where they occur', async () => {
  const before = await scrape(gateway);
  await streamed(user.client);
  await user.client.get('/v1/keys');
  const after = await scrape(gateway);
  const grown = (name: string, labels: Record<string, string> = {}) =>
    sumOf(after, name, labels) - sumOf(before, name, labels);
  expect(grown('gw_overhead_seconds_count', { phase: 'first_byte_relay' })).toBe(1);
  expect(grown('gw_db_query_seconds_count', { query: 'list_keys' })).toBe(1);
  expect(sumOf(after, 'gw_db_query_seconds_count', { query: 'find_account' })).toBeGreaterThan(0);
  expect(grown('gw_log_flush_seconds_count')).toBeGreaterThan(0);
  expect(sumOf(after, 'gw_log_batches_refused_total')).toBeLessThan(
    sumOf(after, 'gw_log_flush_seconds_count'),
  );
  const pools = after.series
    .filter(({ name }) => name === 'gw_db_pool_max')
    .map(({ labels }) => labels['pool']);
  expect(pools).toEqual(['main', 'query', 'log', 'operators', 'spend']);
});

test('refused callers are counted by why', async () => {
  const before = await scrape(gateway);
  const keyless = httpClient(gateway.url);
  await keyless.get('/v1/models');
  await keyless.get('/v1/models', { authorization: 'Basic x' });
  await httpClient(gateway.url, newServiceKey(randomBytes(32))).get('/v1/models');
  const made = await user.client.post('/v1/service-keys', {});
  const { id, api_key: key } = made.json<{ id: string; api_key: string }>();
  await httpClient(gateway.url, key).get('/v1/models');
  await user.client.delete(`/v1/service-keys/${id}`);
  expect((await httpClient(gateway.url, key).get('/v1/models')).status).toBe(401);
  const after = await scrape(gateway);
  for (const reason of ['missing', 'malformed', 'unknown_key', 'revoked_key']) {
    const name = 'gw_auth_failures_total';
    expect(sumOf(after, name, { reason }) - sumOf(before, name, { reason }), reason).toBe(1);
  }
});

test('provider keys are counted by the sealing key they lie under', async () => {
  const { series } = await scrape(gateway);
  const states = series
    .filter(({ name }) => name === 'gw_sealed_keys')
    .map(({ labels: { kid, state } }) => `${kid} ${state}`);
  expect(states).toEqual(['k2 active', 'k1 retired', '_missing missing']);
});

test('sockets to vendors are told by provider and state', async () => {
  gateway.vendors.clear();
  const first = gate();
  gateway.vendors.openai.script(heldBy(first, answer()));
  const asked = chatOk(user.client);
  await gateway.vendors.openai.received(0);
  const sockets = async (provider: string, state: string) =>
    sumOf(await scrape(gateway), 'gw_upstream_connections', { provider, state });
  expect(await sockets('openai', 'active')).toBe(1);
  expect(await sockets('together', 'active')).toBe(0);
  const attempts = async () => sumOf(await scrape(gateway), 'gw_inflight_attempts');
  expect(await attempts()).toBe(1);
  first.open();
  await asked;
  expect(await sockets('openai', 'active')).toBe(0);
  expect(await attempts()).toBe(0);
  expect(await sockets('openai', 'idle')).toBeGreaterThan(0);
});

test('metrics name no user, key, request or address', async () => {
  const { text } = await httpClient(gateway.adminUrl).get('/metrics');
  for (const secret of [user.id, user.email, user.key, 'sk-', '127.0.0.1', 'unknown-to-the-tables'])
    expect(text).not.toContain(secret);
});
