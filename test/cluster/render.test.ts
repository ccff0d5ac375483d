/** The chart as Helm renders it: renderings, refusals, presets, notes. Needs no cluster. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { validateTables } from '../../src/core/tables/validate-tables.ts';
import type { Values } from '../chart/chart-files.ts';
import {
  chartFolder,
  listFiles,
  readFile,
  readObjects,
  readYaml,
  valuesOfPath,
} from '../chart/chart-files.ts';
import type { KubernetesObject } from '../harness/cluster/kubernetes-object.ts';
import { renderedFiles } from '../harness/cluster/render.ts';
import { staleFiles } from '../harness/generated/made-files.ts';
import { packageVersion } from '../harness/stage/version.ts';
import { chart, helm, kubectl, must, render, tryRender } from './cluster.ts';

interface Refusal {
  readonly name: string;
  readonly values: Values;
  readonly says: string;
  /** The schema refuses it too, in its own words, before a template is read. */
  readonly beyondSchema?: boolean;
}

interface Mutation {
  readonly path: string;
  readonly value: unknown;
  readonly at: string;
}

const cases = listFiles('test/chart/cases', /\.yaml$/);
const defaults = ['test/chart/cases/defaults.yaml'];

/** What `helm install` would apply and say, its notes included. Values go on top of the defaults. */
function dryInstall(values: Values): Promise<string> {
  const files = defaults.flatMap((path) => ['--values', path]);
  const args = ['install', 'model-gateway', chart, '--dry-run=client', ...files, '--values', '-'];
  return must(helm(args, JSON.stringify(values)));
}

const find = (objects: readonly KubernetesObject[], kind: string): KubernetesObject | undefined =>
  objects.find((object) => object.kind === kind);
const podTemplate = (objects: readonly KubernetesObject[]): unknown =>
  find(objects, 'Deployment')?.spec?.['template'];
const tablesOf = (objects: readonly KubernetesObject[]): string =>
  objects.find((object) => object.metadata.name === 'model-gateway-tables')?.data?.['tables.yaml'] ?? '';
const collectorConfig = (objects: readonly KubernetesObject[]) =>
  parse(
    objects.find(({ metadata }) => metadata.name.endsWith('-otel-collector'))?.data?.['config.yaml'] ?? '',
  );

test('the committed renderings are what Helm makes of the chart: npm run render:chart', async () => {
  expect(staleFiles(await renderedFiles()).map(({ path }) => path)).toEqual([]);
});

test.each([...cases, 'test/chart/cases/ha.yaml'])('helm lint finds nothing in %s', async (path) => {
  const { code, out, err } = await helm(['lint', '--strict', chart, '--values', path]);
  expect({ code, report: out + err }).toMatchObject({ code: 0 });
});

test('the chart can be packaged, without what is not part of it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chart-'));
  try {
    await must(helm(['package', chart, '--destination', folder]));
    const files = execFileSync('tar', ['-tzf', join(folder, `model-gateway-${packageVersion}.tgz`)], {
      encoding: 'utf8',
    });
    for (const name of ['values.schema.json', 'files/tables.yaml', 'files/tests/chat.mjs', 'README.md'])
      expect(files).toContain(`model-gateway/${name}`);
    expect(files).not.toMatch(/gitkeep/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe('the chart refuses', () => {
  test.each(readYaml('test/cluster/refusals.yaml') as Refusal[])(
    '$name',
    async ({ values, says, beyondSchema }) => {
      const more = beyondSchema === true ? ['--skip-schema-validation'] : [];
      const { code, err } = await tryRender(defaults, values, more);
      expect(code).not.toBe(0);
      expect(err.replaceAll(/\s+/g, ' ')).toContain(says);
      if (beyondSchema === true) expect((await tryRender(defaults, values)).code).not.toBe(0);
    },
  );

  test('all mistakes at once', async () => {
    const { err } = await tryRender([], {
      registration: { mode: 'closed' },
      drain: { terminationGracePeriodSeconds: 1 },
    });
    for (const part of [
      'database.existingSecret',
      'sealing.existingSecret',
      'drain.terminationGracePeriodSeconds',
    ])
      expect(err).toContain(part);
  });

  test('under helm lint, which takes what the schema says for an error and shows the rest', async () => {
    const lint = async (drain: Values) => {
      const args = ['lint', chart, '--values', defaults[0] ?? '', '--values', '-'];
      const { code, out, err } = await helm(args, JSON.stringify({ drain }));
      return { code, report: out + err };
    };
    const short = await lint({ terminationGracePeriodSeconds: 60 });
    expect(short.report).toContain('drain.terminationGracePeriodSeconds is 60');
    expect(short.report).toContain('streams would be cut. Set it to 330 or more, or to null.');
    const unknown = await lint({ flushSeconds: 5 });
    expect(unknown).toMatchObject({ code: 1, report: expect.stringContaining(`at '/drain/flushSeconds'`) });
  });

  test.each(readYaml('test/chart/mutations.yaml') as Mutation[])(
    'what the schema does not allow, with the place: $path, $value',
    async ({ path, value, at }) => {
      const { code, err } = await tryRender(defaults, valuesOfPath(path, value));
      expect(code).toBe(1);
      expect(err).toContain(`at '${at}'`);
    },
  );
});

describe('an edit of the tables', () => {
  test('changes the ConfigMap and leaves the pods alone', async () => {
    const shipped = await render(defaults);
    const prices = [{ provider: 'openai', model: 'gpt-6-luna', input: '0.20', output: '0.90' }];
    const edited = await render(defaults, { tables: { document: { prices } } });
    expect(tablesOf(edited)).not.toBe(tablesOf(shipped));
    expect(podTemplate(edited)).toEqual(podTemplate(shipped));
    const changed = edited.filter((object, index) => !isDeepStrictEqual(object, shipped[index]));
    expect(changed.map((object) => object.kind)).toEqual(['ConfigMap']);
  });

  test('lays parts over the shipped document, false and zero included, and the server takes the whole', async () => {
    const document = { cooldown: { after_429: false, failures: 2 }, limits: { stream_bytes: 268435456 } };
    const whole = parse(tablesOf(await render(defaults, { tables: { document } }))) as Record<
      string,
      unknown
    >;
    const shipped = readYaml(`${chartFolder}/files/tables.yaml`) as Record<string, unknown>;
    expect(whole['tiers']).toEqual(shipped['tiers']);
    expect(whole['prices']).toEqual(shipped['prices']);
    expect(whole).toMatchObject(document);
    expect(validateTables(whole)).toMatchObject({ ok: true });
  });

  test('is the shipped file, comments included, when nothing is laid over it', async () => {
    expect(tablesOf(await render(defaults)).trim()).toBe(readFile(`${chartFolder}/files/tables.yaml`).trim());
  });
});

describe('the collector beside the gateway', () => {
  const collector = (more: Values = {}): Values => ({
    otelCollector: { enabled: true, exportEndpoint: 'http://o:4318', ...more },
  });

  test('is replaced when what it reads at its start changes, and for nothing else', async () => {
    const before = podTemplate(await render(defaults, collector()));
    expect(podTemplate(await render(defaults, collector({ exportEndpoint: 'http://p:4318' })))).not.toEqual(
      before,
    );
    const labelled = { ...collector(), commonLabels: { team: 'platform' } };
    expect(podTemplate(await render(defaults, labelled))).toEqual(before);
  });

  test.each([
    ['0.0.0.0', '0.0.0.0:13133'],
    ['::', '[::]:13133'],
  ])('tells its health on %s, as the gateway does', async (listenAddress, endpoint) => {
    const config = collectorConfig(await render(defaults, { ...collector(), listenAddress }));
    expect(config.extensions.health_check).toEqual({ endpoint });
  });
});

test.each([
  [{}, undefined],
  [
    { caBundle: { secret: 'company-ca' } },
    { ca_file: '/etc/model-gateway/ca/ca.crt', include_system_ca_certs_pool: true },
  ],
])('the collector trusts what the gateway trusts: %j', async (values, tls) => {
  const exporting = { enabled: true, exportEndpoint: 'https://otlp.example.com/@team' };
  const objects = await render(defaults, { ...values, otelCollector: exporting });
  expect(collectorConfig(objects).exporters.otlphttp).toEqual({ endpoint: exporting.exportEndpoint, tls });
});

describe('ingress.preset', () => {
  test.each([
    [
      'nginx',
      {
        'nginx.ingress.kubernetes.io/proxy-read-timeout': '330',
        'nginx.ingress.kubernetes.io/proxy-buffering': 'off',
      },
    ],
    ['haproxy', { 'haproxy.org/timeout-server': '330s', 'haproxy-ingress.github.io/timeout-server': '330s' }],
    ['alb', { 'alb.ingress.kubernetes.io/load-balancer-attributes': 'idle_timeout.timeout_seconds=330' }],
    ['traefik', undefined],
    ['none', undefined],
  ])('%s lets a long stream pass', async (preset, annotations) => {
    const ingress = find(
      await render(defaults, { ingress: { enabled: true, preset, hosts: ['a.example'] } }),
      'Ingress',
    );
    if (annotations === undefined) expect(ingress?.metadata.annotations).toBeUndefined();
    else expect(ingress?.metadata.annotations).toMatchObject(annotations);
  });
});

describe('what depends on the cluster', () => {
  const shortIngress = {
    enabled: true,
    preset: 'nginx',
    hosts: ['a.example'],
    annotations: { 'nginx.ingress.kubernetes.io/proxy-read-timeout': '60' },
  };
  const monitoring = { metrics: { serviceMonitor: { enabled: true }, dashboards: { enabled: true } } };

  test('is left out where the kind is not known, and said so', async () => {
    const out = await dryInstall(monitoring);
    expect(out).not.toContain('kind: ServiceMonitor');
    expect(out).toContain('metrics.serviceMonitor was left out');
  });

  test.each([
    [{ replicaCount: 1 }, 'One replica'],
    [{ podDisruptionBudget: { enabled: false } }, 'No PodDisruptionBudget'],
    [{ networkPolicy: { enabled: false } }, 'No NetworkPolicy'],
    [{ outbound: { policy: 'allow-private' } }, 'outbound.policy is allow-private'],
    [{ ingress: { enabled: true, hosts: ['a.example'] } }, 'Streams need 330 s'],
    [{ autoscaling: { enabled: true, inflightStreams: 10 } }, 'custom metrics API'],
    [{ autoscaling: { enabled: true } }, 'metrics-server'],
    [{ replicaCount: 30 }, '38 pods may open 687 connections'],
    [{ spool: { existingClaim: 'spool' } }, 'or pods on other nodes never start'],
    [{ spool: { existingClaim: 'spool' }, replicaCount: 1 }, 'Set strategy.maxSurge to 0'],
    [{ autoscaling: { enabled: true, minReplicas: 1 } }, 'Set autoscaling.minReplicas to 2'],
    [{ resources: { limits: { memory: null } } }, 'resources.limits.memory is not set'],
    [{ tables: { existingConfigMap: 'ours' } }, 'set drain.requestSeconds to it'],
    [{ telemetry: { propagateTo: ['self_hosted'] } }, 'telemetry.propagateTo has no effect'],
    [{ resources: { limits: { cpu: '1' } } }, 'resources.limits.cpu throttles'],
    [{ ingress: shortIngress }, 'sets proxy-read-timeout to 60 s'],
    [{ ingress: shortIngress }, 'one client may use up registration.perMinute for all'],
    [{ service: { type: 'NodePort' } }, 'one client may use up registration.perMinute for all'],
    [{ service: { type: 'LoadBalancer' } }, 'service.type is LoadBalancer: clients may all have the address'],
  ])('warns about %j', async (values, warning) => {
    const notes = (await dryInstall(values)).split('NOTES:')[1] ?? '';
    expect(notes).toContain(warning);
    expect(notes).toContain('/v1/chat/completions');
  });
});

test.each([
  [{ mode: 'open' }, `curl -s http://127.0.0.1:8080/v1/users \\`],
  [
    { mode: 'token', existingSecret: 'strangers', tokenKey: 'a.b' },
    '/v1/users -H "Authorization: Bearer $TOKEN"',
  ],
  [
    { mode: 'token', existingSecret: 'strangers', tokenKey: 'a.b' },
    `get secret strangers -o go-template='{{ index .data "a.b"`,
  ],
  [{ mode: 'closed' }, 'exec deployment/model-gateway -c model-gateway -- node dist/main.js users add'],
])('the first user is made as registration lets it: %j', async (registration, line) => {
  const notes = (await dryInstall({ registration })).split('NOTES:')[1] ?? '';
  expect(notes).toContain(line);
  expect(notes.includes('curl -s http://127.0.0.1:8080/v1/users')).toBe(registration.mode !== 'closed');
});

test.each<[Values]>([
  [{ podLabels: { 'app.kubernetes.io/version': '1' }, commonLabels: { 'app.kubernetes.io/part-of': 'llm' } }],
  [{ cache: { memoryBytes: 2147483648 }, redis: { existingSecret: 'redis' } }],
  [{ cache: { memoryBytes: 2147483648 }, resources: { limits: { memory: null } } }],
])(
  'labels that are not the chart’s, and a cache that is not used or has no limit, pass: %j',
  async (values) => {
    expect(await tryRender(defaults, values)).toMatchObject({ code: 0 });
  },
);

test.each([
  [{}, 10],
  [{ replicaCount: 4 }, 10],
  [{ database: { maxConnections: 33 } }, 2],
  [{ database: { maxConnections: 50 } }, 7],
  [{ database: { maxConnections: 50 }, adminApi: { existingSecret: 'admin' } }, 4],
  [{ database: { maxConnections: 1000 } }, 10],
  [{ database: { maxConnections: 20, directUrlKey: 'direct' } }, 10],
  [{ strategy: { maxSurge: 3 }, database: { maxConnections: 63 } }, 4],
  [{ database: { maxConnections: 100, poolSize: 20 } }, 20],
])('pools are sized by the budget of connections: %j', async (values, pool) => {
  const deployment = JSON.stringify(find(await render(defaults, values), 'Deployment'));
  expect(deployment).toContain(`{"name":"GW_DATABASE_POOL","value":"${pool}"}`);
});

test.each([
  ['mounted', '{"name":"GW_TABLES_FILE","value":"/etc/model-gateway/tables/routing.yaml"}'],
  ['watch', '{"name":"GW_TABLES_CONFIGMAP","value":"model-gateway/ours/routing.yaml"}'],
])('tables that are %s are those of tables.key', async (source, variable) => {
  const tables = { source, existingConfigMap: 'ours', key: 'routing.yaml' };
  const values = { tables, networkPolicy: { kubeApi: { cidrs: ['10.0.0.1/32'] } } };
  expect(JSON.stringify(find(await render(defaults, values), 'Deployment'))).toContain(variable);
});

test.each([
  ['512Mi', 307],
  ['1.5Gi', 921],
  ['.5Gi', 307],
  ['1500M', 858],
  ['1G', 572],
  ['524288Ki', 307],
  ['1500000k', 858],
  ['1e9', 572],
  ['536870912', 307],
  [536870912, 307],
  [8589934592, 4915],
])('the heap is three fifths of a memory limit of %s', async (memory, heapMiB) => {
  const deployment = JSON.stringify(
    find(await render(defaults, { resources: { limits: { memory } } }), 'Deployment'),
  );
  expect(deployment).toContain(`"--max-old-space-size=${heapMiB} --max-semi-space-size=16"`);
});

test('DNS servers that are not named are in private networks, not everywhere', async () => {
  const egress = find(await render(defaults, { networkPolicy: { dns: [] } }), 'NetworkPolicy')?.spec?.[
    'egress'
  ];
  const [dns, database] = egress as { to: object[]; ports: { port: number }[] }[];
  expect(dns?.ports.map(({ port }) => port)).toEqual([53, 53]);
  expect(dns?.to).toEqual(database?.to);
  expect(JSON.stringify(dns?.to)).toContain('10.0.0.0/8');
});

test.each<[Values]>([
  [{ vendors: { openai: 'http://127.0.0.1:4000' } }],
  [{ vendors: { openai: 'http://litellm.ai.svc:4000' }, networkPolicy: { extraEgress: [{}] } }],
  [{ vendors: { openai: 'http://litellm.ai.svc:4000' }, networkPolicy: { enabled: false } }],
  [{ vendors: { openai: 'http://litellm.ai.svc:4000' }, egressProxy: { url: 'http://proxy:3128' } }],
  [
    {
      vendors: { openai: 'http://10.1.2.3:4000' },
      selfHosted: { allow: [{ cidr: '10.1.2.3/32', ports: [4000] }] },
    },
  ],
  [
    {
      vendors: { openai: 'https://proxy.example.com:8443/v1' },
      networkPolicy: { providerPorts: [443, 8443] },
    },
  ],
  [{ telemetry: { otlpEndpoint: 'http://127.0.0.1:5318' } }],
  [{ telemetry: { otlpEndpoint: 'https://otlp.example.com' } }],
  [{ selfHosted: { allow: [{ cidr: '10.20.0.5/24', ports: [1] }] }, networkPolicy: { enabled: false } }],
])('what is let out is not refused: %j', async (values) => {
  expect(await tryRender(defaults, values)).toMatchObject({ code: 0 });
});

test.each([
  [{ replicaCount: 1 }, undefined],
  [{ autoscaling: { enabled: true, minReplicas: 1 } }, { maxUnavailable: 1 }],
  [{ autoscaling: { enabled: true, minReplicas: 1, maxReplicas: 1 } }, undefined],
  [
    { replicaCount: 3, podDisruptionBudget: { maxUnavailable: null, minAvailable: '66%' } },
    { minAvailable: '66%' },
  ],
  [
    { autoscaling: { enabled: true }, podDisruptionBudget: { maxUnavailable: null, minAvailable: '50%' } },
    { minAvailable: '50%' },
  ],
])('a budget is there when there can be more than one replica: %j', async (values, budget) => {
  const spec = find(await render(defaults, values), 'PodDisruptionBudget')?.spec;
  if (budget === undefined) expect(spec).toBeUndefined();
  else expect(spec).toMatchObject(budget);
});

test('a release by another name is found by its rules and dashboards, beside those that have the chart’s', async () => {
  const values = {
    fullnameOverride: 'llm',
    metrics: { prometheusRule: { enabled: true }, dashboards: { enabled: true } },
  };
  const out = await must(tryRender(defaults, values));
  expect(out).toContain('horizontalpodautoscaler=~".*model-gateway.*|(.*-)?llm"');
  expect(out.match(/deployment=~\\".*model-gateway.*\|\(\.\*-\)\?llm\\"/g)).toHaveLength(3);
});

test.each([
  { base: '', at: 'docs/runbooks.md' },
  { base: 'https://git.example.com/gw/blob/v1', at: 'https://git.example.com/gw/blob/v1/docs/runbooks.md' },
  { base: 'https://git.example.com/gw/blob/v1/', at: 'https://git.example.com/gw/blob/v1/docs/runbooks.md' },
])('the runbook of every alert is at "$base"', async ({ base, at }) => {
  const prometheusRule = { enabled: true, runbookBaseUrl: base };
  const out = await must(tryRender(defaults, { metrics: { prometheusRule } }));
  const links = [...out.matchAll(/runbook_url: (.*)#gw\w+$/gm)].map(([, link]) => link);
  expect(links).toHaveLength(readFile(`${chartFolder}/rules/alerts.yaml`).match(/- alert: /g)?.length ?? 0);
  expect(new Set(links)).toEqual(new Set([at]));
});

test('k8s/base builds to what the chart renders with its defaults', async () => {
  const built = await must(kubectl(['kustomize', 'k8s/base']));
  const objects = new Map(
    built.split(/^---$/m).map((text) => {
      const object = parse(text, { version: '1.1' }) as KubernetesObject;
      return [`${object.kind}/${object.metadata.name}`, object];
    }),
  );
  const rendered = (await render(defaults)).filter(
    ({ metadata }) =>
      metadata.annotations?.['helm.sh/hook'] === undefined &&
      metadata.labels?.['app.kubernetes.io/component'] !== 'test',
  );
  expect([...objects.keys()].sort()).toEqual(
    rendered.map(({ kind, metadata }) => `${kind}/${metadata.name}`).sort(),
  );
  for (const object of rendered) {
    const { namespace: _namespace, labels = {}, ...metadata } = object.metadata;
    const { 'helm.sh/chart': _chart, 'app.kubernetes.io/managed-by': _manager, ...kept } = labels;
    const expected = { ...object, metadata: { ...metadata, labels: kept } };
    if (object.kind === 'ConfigMap') {
      const text = (value: KubernetesObject | undefined) => value?.data?.['tables.yaml']?.trim();
      expect(text(objects.get('ConfigMap/model-gateway-tables'))).toBe(text(object));
    } else expect(objects.get(`${object.kind}/${metadata.name}`)).toEqual(expected);
  }
  expect(readObjects('k8s/base/model-gateway.yaml').length).toBe(objects.size - 1);
});
