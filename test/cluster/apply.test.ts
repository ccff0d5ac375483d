/** The API server takes every object of the chart and of k8s/, strictly, in a namespace that enforces the restricted standard. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import type { Values } from '../chart/chart-files.ts';
import { listFiles, root } from '../chart/chart-files.ts';
import type { KubernetesObject } from '../harness/cluster/kubernetes-object.ts';
import type { Namespace } from './cluster.ts';
import { createNamespace, isOwnCluster, kubectl, must, render, toDocuments, toolFile } from './cluster.ts';

let namespace: Namespace;

/** The kinds of others that the chart uses. In a cluster that is not ours, only those that it knows are tried. */
const definitions = [
  { group: 'monitoring.coreos.com/v1', crd: 'servicemonitors.monitoring.coreos.com' },
  { group: 'monitoring.coreos.com/v1', crd: 'prometheusrules.monitoring.coreos.com' },
  { group: 'gateway.networking.k8s.io/v1', crd: 'httproutes.gateway.networking.k8s.io' },
  { group: 'keda.sh/v1alpha1', crd: 'scaledobjects.keda.sh' },
  { group: 'external-secrets.io/v1', crd: 'externalsecrets.external-secrets.io' },
];
const definitionFiles = [
  'prometheus-operator-crds.yaml',
  'gateway-api-crds.yaml',
  'keda-crds.yaml',
  'external-secrets-crds.yaml',
];
const unknownGroups: string[] = [];

beforeAll(async () => {
  namespace = await createNamespace();
  if (isOwnCluster) {
    for (const file of definitionFiles) await must(kubectl(['apply', '--server-side', '-f', toolFile(file)]));
  }
  for (const { group, crd } of definitions) {
    const wait = ['wait', '--for=condition=Established', `crd/${crd}`, '--timeout=30s'];
    if (isOwnCluster) await must(kubectl(wait));
    else if ((await kubectl(['get', 'crd', crd])).code !== 0) unknownGroups.push(group);
  }
});

afterAll(async () => {
  await namespace?.remove();
});

/** The server's complaints and warnings about the objects; nothing is kept. */
async function complaints(all: readonly KubernetesObject[]): Promise<string> {
  const objects = all.filter(({ apiVersion }) => !unknownGroups.includes(apiVersion));
  if (objects.length === 0) return '';
  const args = [
    'apply',
    '--server-side',
    '--dry-run=server',
    '--validate=strict',
    '-n',
    namespace.name,
    '-f',
    '-',
  ];
  const { err } = await kubectl(args, toDocuments(objects));
  return err;
}

const here = (object: KubernetesObject): KubernetesObject => ({
  ...object,
  metadata: { ...object.metadata, namespace: namespace.name },
});

/** A Pod of its own is what the standard is enforced on; pods of a Deployment would fail later, and in silence. */
function podsOf(objects: readonly KubernetesObject[]): KubernetesObject[] {
  return objects.flatMap((object) => {
    const template = object.spec?.['template'] as
      | { metadata: object; spec: Record<string, unknown> }
      | undefined;
    if (template === undefined || !['Deployment', 'Job', 'StatefulSet'].includes(object.kind)) return [];
    const { serviceAccountName: _account, ...spec } = template.spec;
    const claims = (object.spec?.['volumeClaimTemplates'] ?? []) as KubernetesObject[];
    const volumes = claims.map(({ metadata }) => ({ name: metadata.name, emptyDir: {} }));
    spec['volumes'] = [...((spec['volumes'] ?? []) as object[]), ...volumes];
    const metadata = { ...template.metadata, name: `${object.metadata.name}-pod`, namespace: namespace.name };
    return [{ apiVersion: 'v1', kind: 'Pod', metadata, spec }];
  });
}

test('the namespace refuses a pod that does not fit the standard', async () => {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'bare' },
    spec: { containers: [{ name: 'a', image: 'a' }] },
  };
  expect(await complaints([here(pod)])).toContain('violates PodSecurity "restricted');
});

test('the server names an unknown field', async () => {
  const [deployment] = (await render(['test/chart/cases/defaults.yaml'])).filter(
    ({ kind }) => kind === 'Deployment',
  );
  const misspelt = { ...deployment, spec: { ...deployment?.spec, minReadySecond: 5 } } as KubernetesObject;
  expect(await complaints([here(misspelt)])).toContain('minReadySecond');
});

describe('the chart', () => {
  const cases = listFiles('test/chart/cases', /\.yaml$/).map((path) => ({ files: [path] }));

  test.each([...cases, { files: ['charts/model-gateway/values-ha.yaml', 'test/chart/cases/ha.yaml'] }])(
    'under $files',
    async ({ files }) => {
      const objects = (await render(files)).map(here);
      expect(objects.length).toBeGreaterThan(3);
      expect(await complaints(objects)).toBe('');
      expect(await complaints(podsOf(objects))).toBe('');
    },
  );

  /** Values that look harmless, and of which the server has refused what came of them. */
  test.each<Values>([
    { service: { ipFamilies: ['IPv4', 'IPv6'] } },
    { image: { tag: '1.0.0-' } },
    { image: { tag: '_x' } },
    { image: { tag: `${'a'.repeat(62)}.bbbbbb` } },
    { resources: { limits: { memory: '1.5Gi' } } },
    { resources: { limits: { memory: 536870912 } } },
    { selfHosted: { allow: [{ cidr: 'fd30::12:a000/115', ports: [8000] }] } },
    { networkPolicy: { dns: [] } },
    { strategy: { maxSurge: 0, maxUnavailable: 1 } },
    { fullnameOverride: 'llm', nameOverride: '0gateway' },
    { otelCollector: { enabled: true, exportEndpoint: 'https://otlp.example.com:4318' } },
  ])('with %j', async (values) => {
    const objects = (await render(['test/chart/cases/defaults.yaml'], values)).map(here);
    expect(await complaints(objects)).toBe('');
  });

  test.each(['nginx', 'traefik', 'haproxy', 'alb', 'none'])('with an ingress for %s', async (preset) => {
    const values = { ingress: { enabled: true, preset, hosts: ['a.example'] } };
    const objects = await render(['test/chart/cases/defaults.yaml'], values);
    expect(await complaints(objects.filter(({ kind }) => kind === 'Ingress').map(here))).toBe('');
  });
});

describe('the manifests', () => {
  async function build(folder: string): Promise<KubernetesObject[]> {
    const text = await must(kubectl(['kustomize', folder]));
    return parseAllDocuments(text, { version: '1.1' }).map(
      (document) => document.toJSON() as KubernetesObject,
    );
  }

  test.each(['base', 'overlays/eval', 'overlays/production', 'overlays/sidecar-demo'])(
    'k8s/%s',
    async (folder) => {
      const objects = moved(await build(`k8s/${folder}`));
      expect(await complaints(objects)).toBe('');
      expect(await complaints(podsOf(objects))).toBe('');
    },
  );

  /** The namespace is that of the test, whatever the overlay says. */
  const moved = (objects: readonly KubernetesObject[]): KubernetesObject[] =>
    objects.map((object) => (object.kind === 'Namespace' ? object : here(object)));

  /** Production with components, as somebody's own overlay would have them. */
  async function buildWith(components: readonly string[]): Promise<KubernetesObject[]> {
    const folder = mkdtempSync(join(root, 'k8s/.test-'));
    try {
      const kustomization = {
        apiVersion: 'kustomize.config.k8s.io/v1beta1',
        kind: 'Kustomization',
        resources: ['../overlays/production'],
        components: components.map((name) => `../components/${name}`),
      };
      writeFileSync(join(folder, 'kustomization.yaml'), stringify(kustomization));
      return await build(relative(root, folder));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  const components = readdirSync(join(root, 'k8s/components')).sort();
  const together = components.filter((name) => name !== 'prometheus-adapter');

  test.each([...components.map((name) => [name]), together])(
    'k8s/components on top of production: %s',
    async (...names) => {
      const objects = await buildWith(names);
      const scalers = objects.filter(({ kind }) => /HorizontalPodAutoscaler|ScaledObject/.test(kind));
      expect(scalers).toHaveLength(1);
      const deployment = objects.find(({ kind }) => kind === 'Deployment');
      expect(deployment?.spec?.['replicas']).toBeUndefined();
      expect(await complaints(moved(objects))).toBe('');
      expect(await complaints(podsOf(moved(objects)))).toBe('');
    },
  );

  test.runIf(isOwnCluster).each([
    ['keda', 'ScaledObject', 'minReplicaCounts'],
    ['external-secrets', 'ExternalSecret', 'refreshIntervals'],
    ['monitoring', 'ServiceMonitor', 'endpoint'],
    ['gateway-api', 'HTTPRoute', 'hostname'],
  ])(
    'a misspelt field of k8s/components/%s is named by the definition of its kind',
    async (name, kind, field) => {
      const object = (await buildWith([name])).find((one) => one.kind === kind);
      const misspelt = { ...object, spec: { ...object?.spec, [field]: 1 } } as KubernetesObject;
      expect(await complaints([here(misspelt)])).toContain(field);
    },
  );
});
