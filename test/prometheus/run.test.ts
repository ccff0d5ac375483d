/** Dashboards, rules and numbers as Prometheus itself gives them, after a run with faults of two replicas. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { durationBuckets } from '../../src/telemetry/families/buckets.ts';
import { fillVariables, panelsOf, readDashboards, ruleFiles } from '../harness/observe/dashboards.ts';
import { demoTables } from '../harness/observe/demo-world.ts';
import type { Seen } from '../harness/observe/traffic.ts';
import { faults } from '../harness/observe/vendors.ts';
import { sql } from '../harness/servers/fault-postgres.ts';
import type { VendorName } from '../harness/vendors/vendor-pack.ts';
import { vendorNames } from '../harness/vendors/vendor-pack.ts';
import type { ExercisedWorld } from './exercised-world.ts';
import { exerciseWorld } from './exercised-world.ts';

/** What Grafana would take for `$__rate_interval` at this scrape interval, and a little more, for steady numbers. */
const RATE_INTERVAL = '10s';
const STEP_SECONDS = 2;

/** The status under which an answer is counted whose client left before its head. */
const CLIENT_LEFT = 499;

/** Panels that no short run can fill, with the reason. */
const needLonger: Readonly<Record<string, string>> = {
  'cost: Against last week': 'compares with the week before',
};

let run: ExercisedWorld;
beforeAll(async () => {
  run = await exerciseWorld();
}, 180_000);
afterAll(async () => {
  await run?.world.close();
}, 60_000);

const dashboards = readDashboards();
const targets = dashboards.flatMap((dashboard) =>
  panelsOf(dashboard).flatMap((panel) =>
    (panel.targets ?? []).map((target) => ({
      where: `${dashboard.name}: ${panel.title}`,
      refId: target.refId,
      expr: fillVariables(dashboard, target.expr, RATE_INTERVAL),
      target,
    })),
  ),
);

/** Finite values of an expression: over the whole run, or at its end. */
async function valuesOf(expr: string, instant: boolean): Promise<readonly number[]> {
  const { prometheus } = run.world;
  const values = instant
    ? (await prometheus.query(expr, run.endedAt)).map(({ value }) => value)
    : (await prometheus.queryRange(expr, run.beganAt, run.endedAt, STEP_SECONDS)).flatMap(({ points }) =>
        points.map(([, value]) => value),
      );
  return values.filter(Number.isFinite);
}

describe('every query of every panel', () => {
  test.each(targets)('$where ($refId) has data', async ({ where, expr, target }) => {
    const values = await valuesOf(expr, target.instant === true);
    if (needLonger[where] === undefined) expect(values.length, expr).toBeGreaterThan(0);
    else expect(values, `${where} has data by now: take it off the list`).toEqual([]);
  });

  test('is excused from that only where the panel exists', () => {
    expect(targets.map(({ where }) => where)).toEqual(expect.arrayContaining(Object.keys(needLonger)));
  });
});

test.each(
  dashboards.flatMap((dashboard) =>
    dashboard.annotations.list.map(({ name, expr }) => ({
      where: `${dashboard.name}: ${name}`,
      expr: fillVariables(dashboard, expr, RATE_INTERVAL),
    })),
  ),
)('the annotation $where marks what happened in the run', async ({ expr }) => {
  expect((await valuesOf(expr, false)).length).toBeGreaterThan(0);
});

test.each(targets.filter(({ target }) => target.exemplar === true))(
  '$where ($refId) has exemplars that lead to traces that exist',
  async ({ expr }) => {
    const exemplars = await run.world.prometheus.exemplars(expr, run.beganAt, run.endedAt);
    expect(exemplars.length).toBeGreaterThan(0);
    const known = new Set(run.world.collector.spans.map(({ traceId }) => traceId));
    for (const { labels } of exemplars) expect([...known]).toContain(labels['trace_id']);
  },
);

describe('rules', () => {
  test('are all loaded, and evaluated without an error', async () => {
    const rules = await run.world.prometheus.rules();
    expect(rules.map(({ name }) => name).sort()).toEqual(ruleNames().sort());
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
  });

  test('record something', async () => {
    const recorded = (await run.world.prometheus.rules()).filter(({ type }) => type === 'recording');
    for (const { name } of recorded) expect((await valuesOf(name, true)).length, name).toBeGreaterThan(0);
  });
});

function ruleNames(): string[] {
  return ruleFiles().flatMap((file) =>
    (
      parse(readFileSync(file, 'utf8')) as { groups: { rules: { alert?: string; record?: string }[] }[] }
    ).groups.flatMap(({ rules }) => rules.map(({ alert, record }) => alert ?? record ?? '')),
  );
}

/** All that was ever counted, over replicas and restarts: label values, joined by a blank, to sum. */
async function summed(by: readonly string[], metric: string): Promise<Record<string, number>> {
  const { prometheus } = run.world;
  const beforeRestart = `${metric} and on (pod) gw_build_info{pod="model-gateway-1"}`;
  const samples = [
    ...(await prometheus.query(`sum by (${by.join()}) (${beforeRestart}) > 0`, run.restartedAt)),
    ...(await prometheus.query(`sum by (${by.join()}) (${metric}) > 0`, run.endedAt)),
  ];
  const sums: Record<string, number> = {};
  for (const { labels, value } of samples) {
    const key = by.map((label) => labels[label]).join(' ');
    sums[key] = (sums[key] ?? 0) + value;
  }
  return sums;
}

/** The same from the log rows; zeros left out. */
async function rowsSummed(by: string, what: string): Promise<Record<string, number>> {
  const rows = await sql<{ key: string; total: string }>(
    run.world.postgres.database.url,
    `SELECT ${by} AS key, sum(${what})::text AS total FROM request_logs GROUP BY 1 HAVING sum(${what}) > 0`,
  );
  return Object.fromEntries(rows.map(({ key, total }) => [key, Number(total)]));
}

const counted = (keys: readonly string[]): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(keys, (key) => key)].map(([key, of]) => [key, of.length]));

describe('counters at the last scrape, summed over replicas and a restart, equal', () => {
  test('the money in the log rows and in the answers, to the micro-dollar', async () => {
    const rows = await rowsSummed(`mode || ' ' || provider`, 'cost_micro_usd');
    expect(await summed(['mode', 'provider'], 'gw_cost_microusd_total')).toEqual(rows);
    expect(Object.keys(rows).length).toBeGreaterThan(5);
    const shown = run.seen
      .map(({ text }) => /"cost_usd":"(\d+)\.(\d{6})"/.exec(text ?? ''))
      .reduce((total, match) => total + Number(`${match?.[1] ?? ''}${match?.[2] ?? ''}`), 0);
    const told = await rowsSummed('status', 'cost_micro_usd');
    expect(shown).toBe(told['success']);
  });

  test('what the cache saved', async () => {
    const saved = await summed(['mode'], 'gw_cache_saved_microusd_total');
    expect(saved).toEqual(await rowsSummed('mode', 'saved_micro_usd'));
    expect(Object.keys(saved).length).toBe(2);
  });

  test('the requests that clients sent, and their rows', async () => {
    const requests = await summed(['mode'], 'gw_requests_total');
    const mode = ({ story }: Seen) =>
      story.headers?.['x-gateway-override-model'] === undefined ? story.model : 'override';
    expect(requests).toEqual(counted(run.seen.map(mode)));
    expect(requests).toEqual(await rowsSummed('mode', '1'));
  });

  test('the answers by status', async () => {
    const answers = await summed(
      ['http_response_status_code'],
      'http_server_request_duration_seconds_count{http_route="/v1/chat/completions"}',
    );
    expect(answers).toEqual(counted(run.seen.map(({ status }) => String(status ?? CLIENT_LEFT))));
  });

  test('the tokens in the log rows', async () => {
    const fresh = 'CASE WHEN cache_hit THEN 0 ELSE';
    const tokens = await summed(['type'], 'gw_tokens_total');
    const total = async (column: string) =>
      Object.values(await rowsSummed(`''`, `${fresh} ${column} END`))[0] ?? 0;
    expect(tokens).toEqual({
      input: await total('input_tokens'),
      output: await total('output_tokens'),
      cached_input: await total('cached_input_tokens'),
      reasoning: await total('reasoning_tokens'),
    });
  });

  test('the attempts that vendors saw', async () => {
    const { pack, selfHosted } = run.world.vendors;
    const attempts = await summed(['gen_ai_provider_name'], 'gen_ai_client_operation_duration_seconds_count');
    const ledgers = vendorNames.map((name) => [name, pack[name].ledger.length]);
    expect(attempts).toEqual({
      ...(Object.fromEntries(ledgers) as Record<string, number>),
      self_hosted: selfHosted.ledger.length,
    });
  });

  test('the faults that were injected, as fallbacks', async () => {
    const fallbacks = await summed(['mode', 'from_provider', 'to_provider', 'reason'], 'gw_fallbacks_total');
    expect(fallbacks).toEqual(counted(expectedFallbacks()));
    expect(Object.keys(fallbacks).length).toBeGreaterThan(12);
  });

  test('the streams by how they ended, replays from the cache aside', async () => {
    const streams = run.seen.filter(
      ({ story, status, text }) => story.stream && status === 200 && !text?.includes('"cache_hit":true'),
    );
    expect(await summed(['end'], 'gw_streams_total')).toEqual(
      counted(streams.map(({ story }) => story.end ?? 'complete')),
    );
  });

  test('the share of each replica', async () => {
    const requests = await summed(['pod'], 'gw_requests_total');
    expect(requests['model-gateway-0']).toBeGreaterThan(run.seen.length / 3);
    expect(requests['model-gateway-1']).toBeGreaterThan(run.seen.length / 4);
  });
});

/** Each fault moves its request to the next candidate of the mode, if there is one. */
function expectedFallbacks(): string[] {
  const { tiers } = parse(demoTables()) as { tiers: Record<string, { provider: VendorName }[]> };
  return run.world.vendors.injected.flatMap(({ vendor, fault, bodyText }) => {
    const mode = / in (gw\/\w+)/.exec(bodyText)?.[1] ?? '';
    const tier = (tiers[mode.slice('gw/'.length)] ?? []).map(({ provider }) => provider);
    const next = tier[tier.indexOf(vendor) + 1];
    return next === undefined ? [] : [`${mode} ${vendor} ${next} ${faults[fault].reason}`];
  });
}

/** The stories whose streams a provider serves at the first attempt. */
const firstServed: Readonly<Record<string, readonly string[]>> = {
  openai: ['cheap stream', 'balanced stream', 'old header', 'cut stream', 'client leaves', 'slow client'],
  anthropic: ['premium stream'],
  sarvam: ['stays in India'],
  self_hosted: ['own model'],
};

describe('the median time to the first token', () => {
  test.each(Object.entries(firstServed))(
    'of %s is within a bucket of what its clients measured',
    async (provider, names) => {
      const heads = run.seen
        .filter(({ story, status }) => names.includes(story.name) && status === 200)
        .map(({ headMs }) => headMs / 1_000)
        .sort((a, b) => a - b);
      expect(heads.length).toBeGreaterThan(10);
      const [sample] = await run.world.prometheus.query(
        `histogram_quantile(0.5, sum by (le) (increase(gen_ai_client_operation_time_to_first_chunk_seconds_bucket{gen_ai_provider_name="${provider}"}[1h])))`,
        run.endedAt,
      );
      const bucket = (seconds: number) => durationBuckets.findIndex((bound) => seconds <= bound);
      const measured = heads[Math.floor(heads.length / 2)] ?? 0;
      const told = sample?.value ?? 0;
      expect(Math.abs(bucket(told) - bucket(measured)), `${told} s, ${measured} s`).toBeLessThanOrEqual(1);
    },
  );
});
