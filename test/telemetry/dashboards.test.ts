/** Dashboards, alerts and runbooks against the metrics that a running gateway really has. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { eventually } from '../harness/measure/eventually.ts';
import { scrape, useExercisedGateway } from './exercised-gateway.ts';
import type { Exposition } from './exposition.ts';
import type { Selector } from './promql.ts';
import { parseExpression } from './promql.ts';

const root = join(import.meta.dirname, '../..');
const chart = join(root, 'charts/model-gateway');

interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly datasource: { readonly uid: string };
  readonly exemplar?: boolean;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly Target[];
}

interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly editable: boolean;
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly { readonly expr: string }[] };
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly type: string;
      readonly query: string | { readonly query: string };
      readonly allValue?: string;
      readonly current?: { readonly value: readonly string[] };
    }[];
  };
}

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

const filesIn = (folder: string, ending: string) =>
  readdirSync(join(chart, folder))
    .filter((name) => name.endsWith(ending))
    .map((name) => [name, readFileSync(join(chart, folder, name), 'utf8')] as const);

const dashboards = filesIn('dashboards', '.json').map(
  ([name, text]) => [name, JSON.parse(text) as Dashboard] as const,
);
const rules = filesIn('rules', '.yaml').flatMap(([, text]) =>
  (parse(text) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules),
);
const alerts = rules.filter((rule) => rule.alert !== undefined);

const panelsOf = (dashboard: Dashboard) => dashboard.panels.filter((panel) => panel.type !== 'row');
const expressions: readonly (readonly [where: string, expr: string])[] = [
  ...dashboards.flatMap(([name, dashboard]) => [
    ...panelsOf(dashboard).flatMap((panel) =>
      (panel.targets ?? []).map(({ expr }) => [`${name}: ${panel.title}`, expr] as const),
    ),
    ...dashboard.annotations.list.map(({ expr }) => [`${name}: annotation`, expr] as const),
  ]),
  ...rules.map((rule) => [rule.alert ?? rule.record ?? '', rule.expr] as const),
];

/** Added by Prometheus to whatever it scrapes in a cluster. */
const targetLabels = ['cluster', 'namespace', 'pod', 'job', 'instance'];
/** From kube-state-metrics. */
const foreign: Readonly<Record<string, readonly string[]>> = {
  kube_horizontalpodautoscaler_status_current_replicas: ['horizontalpodautoscaler'],
  kube_horizontalpodautoscaler_spec_max_replicas: ['horizontalpodautoscaler'],
  kube_deployment_status_observed_generation: ['deployment'],
};
/** Exported for those who ask, on no dashboard and in no alert; each with its reason. */
const unused: Readonly<Record<string, string>> = {
  gw_inflight_attempts: 'requests under way are shown; the attacks look at it for what they left behind',
};

const { gateway } = useExercisedGateway();
let live: Exposition;
const labelsByMetric = new Map<string, Set<string>>();

beforeAll(async () => {
  // Of collections it tells once there was one, which takes what some requests leave behind.
  live = await eventually(async () => {
    const seen = await scrape(gateway);
    return seen.series.some(({ name }) => name === 'nodejs_gc_duration_seconds_count') ? seen : undefined;
  });
  for (const { name, labels } of live.series) {
    const known = labelsByMetric.get(name) ?? new Set(targetLabels);
    for (const label of Object.keys(labels)) known.add(label);
    labelsByMetric.set(name, known);
  }
  for (const [name, labels] of Object.entries(foreign))
    labelsByMetric.set(name, new Set([...targetLabels, ...labels]));
  for (const { record } of rules) if (record !== undefined) labelsByMetric.set(record, new Set(targetLabels));
});

/** Values of closed lists that an expression names outright must be ones that occur, or that exist at 0. */
function unknownValues({ metric, matchers }: Selector, expr: string): string[] {
  return matchers
    .filter(
      ({ label, value }) =>
        expr.includes(`${label}="${value}"`) && value !== '' && !targetLabels.includes(label),
    )
    .filter(
      ({ label, value }) => !live.series.some((one) => one.name === metric && one.labels[label] === value),
    )
    .map(({ label, value }) => `${metric}{${label}="${value}"}`);
}

describe('expressions', () => {
  test('are many', () => {
    expect(expressions.length).toBeGreaterThan(100);
  });

  test.each(expressions)('%s parses, and names only metrics and labels that exist', (_where, expr) => {
    const { errors, selectors, groupings } = parseExpression(expr);
    expect(errors).toEqual([]);
    expect(selectors.filter(({ metric }) => !labelsByMetric.has(metric))).toEqual([]);
    for (const { metric, labels } of selectors)
      for (const label of labels) expect([...(labelsByMetric.get(metric) ?? [])], metric).toContain(label);
    const known = new Set(selectors.flatMap(({ metric }) => [...(labelsByMetric.get(metric) ?? [])]));
    if (expr.includes('label_replace')) known.add(/"(\w+)", "\$1"/.exec(expr)?.[1] ?? '');
    for (const label of groupings) expect([...known]).toContain(label);
    expect(selectors.flatMap((selector) => unknownValues(selector, expr))).toEqual([]);
  });
});

test('every exported family of ours has a help text and is on a dashboard or in an alert', () => {
  const texts = expressions.map(([, expr]) => expr).join('\n');
  for (const family of live.families.keys()) {
    expect(live.helps.get(family)?.length ?? 0, family).toBeGreaterThan(10);
    if (/^(nodejs|process)_/.test(family) || unused[family] !== undefined) continue;
    expect(texts, `${family} is used nowhere`).toMatch(
      new RegExp(`\\b${family}(_total|_bucket|_sum|_count)?\\b`),
    );
  }
});

test('docs/telemetry.md lists every family of ours, and none that is not there', () => {
  const text = readFileSync(join(root, 'docs/telemetry.md'), 'utf8');
  const listed = [...text.matchAll(/`((?:gw|gen_ai|http)_\w+)`/g)].map(([, name = '']) =>
    name.replace(/_total$/, ''),
  );
  const labels = new Set([...labelsByMetric.values()].flatMap((known) => [...known]));
  const ours = [...live.families.keys()].filter((family) => !/^(nodejs|process)_/.test(family));
  expect([...new Set(listed.filter((name) => !labels.has(name)))].sort()).toEqual(ours.sort());
});

describe.each(dashboards)('the dashboard %s', (_name, dashboard) => {
  test('has an id, a description, the variables, and is not editable', () => {
    expect(dashboard.uid).toMatch(/^gw-[a-z]+$/);
    expect(dashboard.description.length).toBeGreaterThan(20);
    expect(dashboard.editable).toBe(false);
    const names = dashboard.templating.list.map(({ name }) => name);
    expect(names.slice(0, 4)).toEqual(['datasource', 'cluster', 'namespace', 'pod']);
    // The pods themselves know of no modes and models.
    expect([['provider'], ['mode', 'provider', 'model']]).toContainEqual(names.slice(4));
  });

  test('shows everything at first, also where the cluster has no name', () => {
    for (const { name, type, allValue, current } of dashboard.templating.list) {
      if (type !== 'query') continue;
      expect(allValue, name).toBe('.*');
      expect(current?.value, name).toEqual(['$__all']);
    }
  });

  test('marks new tables, rollouts and starts of pods', () => {
    const texts = dashboard.annotations.list.map(({ expr }) => expr).join();
    for (const metric of ['gw_config_generation', 'kube_deployment_status_observed_generation'])
      expect(texts).toContain(`changes(${metric}{`);
    expect(texts).toContain('process_start_time_seconds');
  });

  test('asks for variables that exist', () => {
    for (const { query } of dashboard.templating.list) {
      if (typeof query === 'string') continue;
      const [, metric = '', label = ''] = /^label_values\((\w+)(?:\{.*\})?, (\w+)\)$/.exec(query.query) ?? [];
      expect([...(labelsByMetric.get(metric) ?? [])], query.query).toContain(label);
    }
  });

  test('gives every panel a title, a description, a unit and the data source variable', () => {
    for (const panel of panelsOf(dashboard)) {
      expect(panel.title.length, String(panel.id)).toBeGreaterThan(2);
      expect(panel.description?.length ?? 0, panel.title).toBeGreaterThan(10);
      expect(panel.fieldConfig?.defaults.unit ?? '', panel.title).not.toBe('');
      for (const { datasource } of [panel, ...(panel.targets ?? [])])
        expect(datasource?.uid).toBe(`\${datasource}`);
    }
  });

  test('has panels with ids of their own that do not overlap', () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos } of dashboard.panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  });

  test('is bound to the chosen clusters, namespaces and pods, and rates over the scrape interval or long windows', () => {
    for (const panel of panelsOf(dashboard)) {
      const refs = (panel.targets ?? []).map(({ refId }) => refId);
      expect(new Set(refs).size, panel.title).toBe(refs.length);
      for (const { expr } of panel.targets ?? []) {
        const { selectors } = parseExpression(expr);
        for (const { metric, labels } of selectors)
          expect(labels, metric).toEqual(expect.arrayContaining(['cluster', 'namespace', 'pod']));
        for (const [, window] of expr.matchAll(/\[([^\]]+)\]/g))
          expect(['$__rate_interval', '1h', '24h']).toContain(window);
        const counters = selectors.filter(({ metric }) => /_total$|_bucket$|_count$|_sum$/.test(metric));
        if (counters.length > 0 && !expr.includes('gw_metrics_dropped'))
          expect(expr, panel.title).toMatch(/rate\(|increase\(/);
      }
    }
  });
});

test('dashboards have ids and titles of their own', () => {
  expect(new Set(dashboards.map(([, { uid }]) => uid)).size).toBe(dashboards.length);
  expect(new Set(dashboards.map(([, { title }]) => title)).size).toBe(dashboards.length);
});

test('latency panels carry exemplars', () => {
  const panels = dashboards.flatMap(([, dashboard]) => panelsOf(dashboard));
  const latency = panels.filter(
    ({ type, targets = [] }) =>
      type === 'timeseries' &&
      targets.some(({ expr }) =>
        /histogram_quantile.*(request_duration|first_chunk|operation_duration)/.test(expr),
      ),
  );
  expect(latency.length).toBeGreaterThan(5);
  for (const { title, targets = [] } of latency)
    for (const { exemplar } of targets) expect(exemplar, title).toBe(true);
});

describe('alerts', () => {
  const runbooks = readFileSync(join(root, 'docs/runbooks.md'), 'utf8');

  test.each(alerts.map((rule) => [rule.alert ?? '', rule] as const))(
    '%s says how bad it is, what it means and what to do',
    (name, { labels, annotations }) => {
      expect(['warning', 'critical']).toContain(labels?.['severity']);
      expect(annotations?.['summary']).toMatch(/\.$/);
      expect(annotations?.['description']).toMatch(/\.$/);
      expect(annotations?.['runbook_url']).toBe(`docs/runbooks.md#${name.toLowerCase()}`);
      expect(runbooks).toMatch(new RegExp(`^## ${name}$`, 'm'));
    },
  );

  test('and runbooks are the same set, each once', () => {
    const sections = [...runbooks.matchAll(/^## (Gw\w+)$/gm)].map(([, name]) => name);
    expect(sections.sort()).toEqual(alerts.map(({ alert }) => alert).sort());
  });

  test('ask for nothing that only the last moments of a process count: the runbooks name lines, which are ours', () => {
    for (const { expr } of alerts) expect(expr).not.toMatch(/drain_cut|rows_printed/);
    const [, last = ''] = runbooks.split('\n## What no alert sees\n');
    const lines = [...last.matchAll(/"msg":"(.+?)"/g)].map(([, text = '']) => text);
    expect(lines).toHaveLength(2);
    const sources = ['app.ts', 'store-lines.ts'].map((name) =>
      readFileSync(join(root, 'src/wiring', name), 'utf8'),
    );
    const telemetry = readFileSync(join(root, 'docs/telemetry.md'), 'utf8');
    for (const line of lines) {
      expect(sources.join('\n')).toContain(`'${line}'`);
      expect(telemetry).toContain(`"msg":"${line}"`);
    }
  });

  test('write numbers as templates that Prometheus knows', () => {
    for (const { annotations = {} } of alerts)
      for (const [, template = ''] of Object.values(annotations)
        .join(' ')
        .matchAll(/\{\{(.*?)\}\}/g))
        expect(template.trim()).toMatch(/^\$(value( \| humanize(Percentage)?)?|labels\.\w+)$/);
  });
});
