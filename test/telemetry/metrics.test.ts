/** Metrics: exact where they count money, bounded where clients choose the names, there before the first event. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Usage } from '../../src/core/answer/usage.ts';
import { noUsage } from '../../src/core/answer/usage.ts';
import type { AttemptRecord } from '../../src/core/attempt-record.ts';
import type { ErrorType } from '../../src/core/errors.ts';
import { errorRows } from '../../src/core/errors.ts';
import type { AttemptFailure, FailureKind } from '../../src/core/outcome.ts';
import type { ChatCall } from '../../src/core/request/chat-call.ts';
import type { RequestEnd, SettledRequest } from '../../src/core/settled-request.ts';
import { compileTables } from '../../src/core/tables/compile-tables.ts';
import { tierNames } from '../../src/core/tables/mode.ts';
import { routingTablesSchema } from '../../src/core/tables/routing-tables.ts';
import { statusLabel } from '../../src/telemetry/http-metrics.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { Families, Histogram } from '../../src/telemetry/series.ts';
import { logRow } from '../adapters/postgres/log-rows.ts';
import { servedRecord } from '../chat/attempt-records.ts';
import { callOf, candidateOf, testTables } from '../chat/story.ts';
import type { Exposition } from './exposition.ts';
import { readExposition, sumOf } from './exposition.ts';

const tables = testTables();
const read = async (metrics: Metrics): Promise<Exposition> =>
  readExposition(await metrics.registry.metrics());

const usage: Usage = { ...noUsage, basis: 'complete', inputTokens: 11, outputTokens: 7 };

function recordOf(model: string, additions: Partial<AttemptRecord> = {}): AttemptRecord {
  const candidate = { ...candidateOf('openai', tables), model };
  return servedRecord(candidate, { startedAtMs: performance.now(), usage, ...additions });
}

function rowOf(additions: Partial<SettledRequest> = {}): SettledRequest {
  return logRow({ mode: 'override', usage, latencyMs: 200, costMicroUsd: 46n, ...additions });
}

const timedOut = { kind: 'timed-out', retryAfterMs: null } as AttemptFailure;

function endOf(status: 'success' | 'client_closed' | 'incomplete'): RequestEnd {
  const error = { type: 'provider_error', message: '' } as const;
  return status === 'incomplete' ? { status, cut: 'upstream_error', error } : { status };
}

const shippedTables = compileTables(
  routingTablesSchema.parse(
    parse(readFileSync(join(import.meta.dirname, '../../charts/model-gateway/files/tables.yaml'), 'utf8')),
  ),
  'shipped',
  1,
);
/** The errors that a request with a candidate can end in. */
const refusals: readonly ErrorType[] = errorRows
  .filter(([type, , end]) => end !== 'elsewhere' && type !== 'authentication_error')
  .map(([type]) => type);
const routes = ['/v1/users', '/v1/keys', '/v1/keys/:id', '/v1/logs', '/v1/stats', '/v1/models', null];
const usualStatuses = [200, 401, 422, 503];
const usualFailures: readonly FailureKind[] = ['rate-limited', 'upstream-failed', 'timed-out'];

/** Every mode and override on every model of the tiers, in every usual way, and every route. */
function useEverything(metrics: Metrics): void {
  const call = callOf({ tables: shippedTables });
  const shared = { method: 'POST', durationMs: 1, whole: true, trace: null, userFault: null };
  for (const route of routes)
    for (const status of usualStatuses) metrics.http.requestEnded({ ...shared, route, status });
  for (const tier of tierNames) {
    for (const { provider, model } of shippedTables.tier(tier)) {
      const candidate = { ...candidateOf(provider, shippedTables), model };
      metrics.attempts.attemptEnded(call, recordOf(model, { candidate }));
      metrics.attempts.attemptEnded(
        call,
        recordOf(model, { candidate, end: { kind: 'cancelled', reason: 'client-gone' } }),
      );
      for (const kind of usualFailures) {
        const failure = { kind, retryAfterMs: null } as AttemptFailure;
        metrics.attempts.attemptEnded(call, recordOf(model, { candidate, end: { kind: 'failed', failure } }));
      }
      for (const mode of [`gw/${tier}`, 'override'])
        for (const stream of [true, false])
          for (const status of ['success', 'client_closed', 'incomplete'] as const)
            metrics.chat.settled(
              call,
              rowOf({ mode, target: { provider, model }, stream, end: endOf(status) }),
            );
      metrics.chat.settled(
        call,
        rowOf({
          mode: `gw/${tier}`,
          cache: 'hit',
          cachedFrom: { provider, model, requestId: null, traceId: null },
          savedMicroUsd: 1n,
        }),
      );
    }
  }
}

/** One row for each mode and override, model, end, form and use of the cache that a document can bring about. */
function endsOfAll({
  tiers,
  prices,
}: typeof shippedTables.document): (readonly [ChatCall, SettledRequest])[] {
  const pairs = [
    ...tierNames.flatMap((tier) => tiers[tier].map((row) => ({ ...row, mode: `gw/${tier}` as const }))),
    ...prices.map((row) => ({ ...row, mode: 'override' as const })),
  ];
  const ends: RequestEnd[] = [
    ...(['success', 'client_closed', 'incomplete'] as const).map(endOf),
    ...refusals.map((type) => ({ status: 'error' as const, error: { type, message: 'x' } })),
  ];
  return pairs.flatMap(({ mode, provider, model }) =>
    ends.flatMap((end) =>
      [true, false].flatMap((stream) =>
        (['miss', 'bypass'] as const).map(
          (cache) =>
            [
              callOf({ tables: shippedTables }),
              rowOf({ mode, target: { provider, model }, stream, end, cache }),
            ] as const,
        ),
      ),
    ),
  );
}

function familyOf(name: string, families: Iterable<string>): string {
  return (
    [...families].filter((family) => name.startsWith(family)).sort((a, b) => b.length - a.length)[0] ?? name
  );
}

/** Label sets per family: the buckets of a histogram are one. */
function seriesByFamily({ families, series }: Exposition): Map<string, number> {
  const sets = new Map<string, Set<string>>();
  for (const { name, labels } of series) {
    const { le: _le, ...rest } = labels;
    const family = familyOf(name, families.keys());
    const known = sets.get(family) ?? new Set();
    sets.set(family, known.add(JSON.stringify(rest)));
  }
  return new Map([...sets].map(([family, known]) => [family, known.size]));
}

describe('label sets', () => {
  test('10,000 models that no table knows add one to a family at most', async () => {
    const metrics = new Metrics();
    metrics.useTables(tables);
    const call = callOf({ tables });
    const before = seriesByFamily(await read(metrics));
    for (let index = 0; index < 10_000; index += 1) {
      const model = `model-${index}"\n\\{}`;
      metrics.attempts.attemptEnded(call, recordOf(model));
      metrics.chat.settled(call, rowOf({ target: { provider: 'openai', model }, mode: 'gw/balanced' }));
    }
    const after = await read(metrics);
    for (const [family, size] of seriesByFamily(after)) {
      const added = size - (before.get(family) ?? 0);
      // Tokens come in four types.
      expect(added, family).toBeLessThanOrEqual(/tokens|token_usage/.test(family) ? 4 : 1);
    }
    expect(sumOf(after, 'gw_requests_total', { model: '_other' })).toBe(10_000);
    expect(sumOf(after, 'gw_cost_microusd_total')).toBe(460_000);
  });

  test('tell apart what fails for users’ own servers and keys, but for an error of ours', async () => {
    const metrics = new Metrics();
    const shared = { method: 'POST', route: '/v1/chat/completions', durationMs: 1, whole: true, trace: null };
    for (const [status, userFault] of [
      [502, 'user_server'],
      [503, 'user_key'],
      [502, null],
      [500, 'user_server'],
      [500, 'user_key'],
    ] as const)
      metrics.http.requestEnded({ ...shared, status, userFault });
    const { series } = await read(metrics);
    const seen = series
      .filter(
        ({ name, value, labels }) => name.endsWith('_seconds_count') && value > 0 && labels['http_route'],
      )
      .map(({ labels }) => `${labels['http_response_status_code']} ${labels['gw_upstream']}`);
    expect(seen.toSorted()).toEqual(['500 ', '502 ', '502 user_server', '503 user_key']);
  });

  test('paths, methods and statuses that others make up share one', async () => {
    const metrics = new Metrics();
    for (let index = 0; index < 10_000; index += 1) {
      const shared = { durationMs: 1, whole: true, trace: null, userFault: null };
      metrics.http.requestEnded({ ...shared, method: `M${index}`, route: null, status: 600 + (index % 99) });
    }
    const { series } = await read(metrics);
    const counts = series.filter(
      ({ name, labels }) => name.endsWith('_count') && labels['http_route'] === '_unmatched',
    );
    expect(counts).toHaveLength(1);
    expect(counts[0]?.labels).toMatchObject({
      http_request_method: '_OTHER',
      http_response_status_code: '6xx',
    });
  });

  test.each<[status: number, label: string]>([
    [599, '5xx'],
    [418, '4xx'],
    ...[200, 201, 204, 499, ...errorRows.map(([, status]) => status)].map((status): [number, string] => [
      status,
      String(status),
    ]),
  ])('status %i is %s', (status, label) => {
    expect(statusLabel(status)).toBe(label);
  });

  test.each([
    ['counter', 4_000],
    ['histogram', 400],
  ] as const)('of a full %s share one, so that its sum stays exact', async (kind, limit) => {
    const families = new Families(new Registry());
    const counter = families.counter('gw_candidates_skipped_total');
    const histogram = families.histogram('gw_output_tokens_per_second');
    const record = (a: string) => {
      if (kind === 'counter') counter.of(a, 'b').add();
      else histogram.of(a, 'b').observe(1);
    };
    for (let index = 0; index < limit; index += 1) record(String(index));
    expect(families.dropped).toBe(0);
    for (let round = 0; round < 3; round += 1)
      for (let index = 0; index < 300; index += 1) record(`new-${index}`);
    // Label sets, not observations.
    expect(families.dropped).toBe(300);
    const exposition = readExposition(await families.registry.metrics());
    const name = kind === 'counter' ? 'gw_candidates_skipped_total' : 'gw_output_tokens_per_second_count';
    const second = kind === 'counter' ? 'reason' : 'model';
    expect(exposition.series.filter((one) => one.name === name)).toHaveLength(limit + 1);
    expect(sumOf(exposition, name)).toBe(limit + 900);
    expect(sumOf(exposition, name, { provider: '_other', [second]: '_other' })).toBe(900);
  });

  test('of every way in which a request can end on the shipped tables are kept', async () => {
    const metrics = new Metrics();
    metrics.useTables(shippedTables);
    const rows = endsOfAll(shippedTables.document);
    for (const [call, row] of rows) metrics.chat.settled(call, row);
    const exposition = await read(metrics);
    expect(rows.length).toBeGreaterThan(1_000);
    expect(sumOf(exposition, 'gw_metrics_dropped_labels_total')).toBe(0);
    expect(sumOf(exposition, 'gw_requests_total')).toBe(rows.length);
    const kept = exposition.series.filter(({ name, value }) => name === 'gw_requests_total' && value === 1);
    expect(kept).toHaveLength(rows.length);
  });

  test('of the largest tables may be too many; the sums stay exact', async () => {
    const { document } = shippedTables;
    const [price] = document.prices;
    if (price === undefined) throw new Error('the shipped tables have no price');
    const prices = Array.from({ length: 2_000 }, (_, index) => ({ ...price, model: `priced-${index}` }));
    const largest = compileTables({ ...document, prices }, 'largest', 1);
    const metrics = new Metrics();
    metrics.useTables(largest);
    for (const [call, row] of endsOfAll(largest.document)) {
      metrics.chat.settled({ ...call, tables: largest }, row);
      metrics.attempts.attemptEnded({ ...call, tables: largest }, recordOf(row.target?.model ?? ''));
    }
    const exposition = await read(metrics);
    const ends = endsOfAll(largest.document).length;
    expect(sumOf(exposition, 'gw_requests_total')).toBe(ends);
    expect(sumOf(exposition, 'gw_cost_microusd_total')).toBe(ends * 46);
    expect(sumOf(exposition, 'gen_ai_client_operation_duration_seconds_count')).toBe(ends);
    expect(sumOf(exposition, 'gw_metrics_dropped_labels_total')).toBeGreaterThan(0);
  });

  test('of the shipped tables with everything in use fit a pod’s budget', async () => {
    const metrics = new Metrics();
    metrics.useTables(shippedTables);
    const born = (await read(metrics)).series.length;
    useEverything(metrics);
    const { series } = await read(metrics);
    expect(born).toBeLessThan(2_200);
    expect(series.length).toBeGreaterThan(3_000);
    // What a running process adds, gauges and Node's own, is below 400.
    expect(series.length).toBeLessThan(5_000 - 400);
    expect(sumOf(await read(metrics), 'gw_metrics_dropped_labels_total')).toBe(0);
  });
});

test('what can happen is there at 0 before it does', async () => {
  const metrics = new Metrics();
  metrics.useTables(tables);
  const exposition = await read(metrics);
  const values = (name: string, label: string) =>
    new Set(exposition.series.filter((one) => one.name === name).map((one) => one.labels[label]));
  expect(values('gw_streams_total', 'end')).toEqual(
    new Set(['complete', 'upstream_error', 'idle_timeout', 'client_abort', 'drain_cut']),
  );
  expect(values('gw_cache_requests_total', 'result')).toEqual(new Set(['hit', 'miss', 'bypass']));
  expect(values('gw_candidates_skipped_total', 'reason').size).toBe(4);
  expect(values('gw_fallbacks_total', 'reason').size).toBe(13);
  expect(values('gw_shed_requests_total', 'resource').size).toBe(7);
  expect(values('gw_auth_failures_total', 'reason').size).toBe(8);
  expect(values('gw_key_checks_total', 'verdict').size).toBe(4);
  expect(values('gw_legacy_use_total', 'surface')).toEqual(new Set(['key', 'mode', 'header']));
  expect(values('gw_db_query_seconds_count', 'query').size).toBe(19);
  expect(values('gw_overhead_seconds_count', 'phase')).toEqual(
    new Set(['before_upstream', 'first_byte_relay', 'after_last_byte']),
  );
  expect([...values('gw_cache_saved_microusd_total', 'model')]).toContain('gpt-test');
  expect(values('http_server_request_duration_seconds_count', 'http_response_status_code')).toEqual(
    new Set(['200', '401', '422', '429', '499', '500', '502', '503']),
  );
  const errors = ['provider_error', 'rate_limit_error', 'service_unavailable_error'];
  expect(values('gw_requests_total', 'outcome')).toEqual(
    new Set(['success', 'client_closed', 'incomplete', ...errors]),
  );
  expect([...values('gw_cost_microusd_total', 'model')]).toContain('gpt-test');
  for (const { name, value } of exposition.series)
    if (/^gw_.*_total$/.test(name)) expect(value, name).toBe(0);
});

describe('a histogram', () => {
  const histogram = () => {
    const families = new Families(new Registry());
    families.registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
    const shape = {
      kind: 'histogram',
      help: 'For this test.',
      labels: [],
      maxSeries: 1,
      buckets: [1, 2.5],
    } as const;
    const series = new Histogram(families, 'h', shape).of();
    return { series, text: () => families.registry.metrics() };
  };

  test('counts a value in the first bucket that holds it, boundaries included', async () => {
    const { series, text } = histogram();
    for (const value of [0, 1, 1.001, 2.5, 2.6]) series.observe(value);
    const exposition = readExposition(await text());
    const buckets = ['1', '2.5', '+Inf'].map((le) => sumOf(exposition, 'h_bucket', { le }));
    expect(buckets).toEqual([2, 4, 5]);
    expect(sumOf(exposition, 'h_count')).toBe(5);
    expect(sumOf(exposition, 'h_sum')).toBeCloseTo(7.101);
  });

  test('keeps an exemplar of sampled traces only', async () => {
    const { series, text } = histogram();
    const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };
    series.observe(0.5, { ...trace, sampled: false });
    series.observe(2, { ...trace, sampled: true });
    const lines = readExposition(await text()).series.filter(({ name }) => name === 'h_bucket');
    expect(lines.map(({ exemplar }) => exemplar)).toEqual([null, trace.traceId, null]);
  });
});

test.each<[why: string, additions: Partial<AttemptRecord>, reason: string | null]>([
  ['no usage was reported', { usage: noUsage }, 'no_usage'],
  ['there is no price', {}, 'no_price'],
  ['it was cut without usage', { end: { kind: 'cut', reason: 'closed' }, usage: noUsage }, 'no_usage'],
  [
    'its client left before all of it was counted',
    { end: { kind: 'cancelled', reason: 'client-gone' }, usage: { ...usage, basis: 'partial' } },
    'no_price',
  ],
  ['it failed', { end: { kind: 'failed', failure: timedOut }, usage: null }, null],
])('an answer without a cost because %s is counted so', async (_why, additions, reason) => {
  const metrics = new Metrics();
  metrics.attempts.attemptEnded(callOf({ tables }), recordOf('gpt-test', additions));
  const exposition = await read(metrics);
  expect(sumOf(exposition, 'gw_unpriced_responses_total')).toBe(reason === null ? 0 : 1);
  if (reason !== null) expect(sumOf(exposition, 'gw_unpriced_responses_total', { reason })).toBe(1);
});
