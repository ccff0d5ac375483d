/** k8s/: every file parses, every kustomization names files that exist, every pod fits the restricted standard. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../harness/cluster/kubernetes-object.ts';
import { listFiles, readObjects, readYaml, root } from './chart-files.ts';
import { podSecurityProblems } from './pod-security.ts';

type Fields = Readonly<Record<string, unknown>>;

const yamlFiles = listFiles('k8s', /\.yaml$/);
const kustomizations = yamlFiles.filter((path) => path.endsWith('kustomization.yaml'));
/** Patches are no objects. */
const objects = yamlFiles
  .filter((path) => !kustomizations.includes(path))
  .flatMap((path) => readObjects(path).map((object) => ({ path, object })))
  .filter(({ object }) => object.apiVersion !== undefined);

const template = (object: KubernetesObject): Fields | undefined =>
  (object.spec?.['template'] as Fields | undefined)?.['spec'] as Fields | undefined;

test.each(kustomizations)('%s names what exists', (path) => {
  const kustomization = readYaml(path) as Fields;
  const patches = (kustomization['patches'] ?? []) as Fields[];
  const generated = [...((kustomization['configMapGenerator'] ?? []) as Fields[])];
  const named = [
    ...((kustomization['resources'] ?? []) as string[]),
    ...((kustomization['components'] ?? []) as string[]),
    ...patches.flatMap((patch) => (typeof patch['path'] === 'string' ? [patch['path']] : [])),
    ...generated
      .flatMap((entry) => (entry['files'] ?? []) as string[])
      .map((file) => file.replace(/^.*=/, '')),
  ];
  expect(named.length).toBeGreaterThan(0);
  for (const name of named) expect(existsSync(join(root, dirname(path), name)), name).toBe(true);
});

describe('every pod', () => {
  const pods = objects.filter(({ object }) => {
    const pod = template(object);
    // A patch says nothing about the image.
    return ((pod?.['containers'] ?? []) as Fields[]).some((container) => container['image'] !== undefined);
  });

  test.each(pods.map(({ path, object }) => ({ path, name: object.metadata.name, object })))(
    '$name of $path fits the restricted standard, without a token and with a read-only root',
    ({ object }) => {
      const pod = template(object) as Fields;
      expect(podSecurityProblems(pod)).toEqual([]);
      expect(pod['automountServiceAccountToken']).toBe(false);
      for (const container of pod['containers'] as Fields[]) {
        expect((container['securityContext'] as Fields)['readOnlyRootFilesystem']).toBe(true);
        expect(container['resources']).toMatchObject({ requests: {}, limits: {} });
      }
    },
  );

  test('is there to be checked', () => {
    expect(pods.length).toBeGreaterThanOrEqual(6);
  });
});

test('no manifest holds a sealing key', () => {
  for (const { path, object } of objects) expect(object.kind, path).not.toBe('Secret');
});

test('the overlays enforce the restricted standard on their namespaces', () => {
  const namespaces = objects.filter(({ object }) => object.kind === 'Namespace');
  expect(namespaces).toHaveLength(3);
  for (const { object } of namespaces)
    expect(object.metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' });
});

test('the production overlay has as many pods as values-ha.yaml, and pools as small', () => {
  const poolIn = (path: string) => {
    const deployment = readObjects(path).find(({ kind }) => kind === 'Deployment') as KubernetesObject;
    const containers = template(deployment)?.['containers'] as Fields[];
    const env = containers.find(({ name }) => name === 'model-gateway')?.['env'] as Fields[];
    return env.find(({ name }) => name === 'GW_DATABASE_POOL')?.['value'];
  };
  const mostPodsIn = (path: string) =>
    readObjects(path).find(({ kind }) => kind === 'HorizontalPodAutoscaler')?.spec?.['maxReplicas'];
  const [overlay, chart] = ['k8s/overlays/production', 'test/chart/rendered/ha.yaml'];
  expect(mostPodsIn(`${overlay}/hpa.yaml`)).toBe(mostPodsIn(chart));
  expect(poolIn(`${overlay}/deployment.yaml`)).toBe(poolIn(chart));
});
