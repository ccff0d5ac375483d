/** A release from install to uninstall. In a cluster of our own its pods are ready at once: a fake node runs them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Values } from '../chart/chart-files.ts';
import type { KubernetesObject } from '../harness/cluster/kubernetes-object.ts';
import type { Namespace } from './cluster.ts';
import {
  chart,
  createNamespace,
  evict,
  getObject,
  getObjects,
  helm,
  isOwnCluster,
  kubectl,
  must,
  waitLimit,
} from './cluster.ts';

const allKinds =
  'deployments,services,configmaps,serviceaccounts,networkpolicies,pdb,hpa,roles,rolebindings,jobs';

let namespace: Namespace;
const pods = 'app.kubernetes.io/component=gateway';
const base: Values = {
  database: { existingSecret: 'gateway-database' },
  sealing: { existingSecret: 'gateway-sealing' },
};

beforeAll(async () => {
  namespace = await createNamespace();
});

afterAll(async () => {
  await namespace?.remove();
});

async function release(
  verb: 'install' | 'upgrade',
  name: string,
  values: Values,
  more: readonly string[] = [],
): Promise<string> {
  const wait = isOwnCluster ? ['--wait', '--timeout', waitLimit] : [];
  const args = [verb, name, chart, '-n', namespace.name, ...wait, ...more, '--values', '-'];
  return must(helm(args, JSON.stringify({ ...base, ...values })));
}

function untilDisruptionsAllowed(count: number): Promise<string> {
  const condition = `--for=jsonpath={.status.disruptionsAllowed}=${count}`;
  return must(kubectl(['-n', namespace.name, 'wait', condition, 'pdb/model-gateway', '--timeout=30s']));
}

const names = (objects: readonly KubernetesObject[]): string[] =>
  objects.map(({ metadata }) => metadata.name).sort();
const status = (object: KubernetesObject): Values => (object as unknown as { status: Values }).status;

describe.runIf(isOwnCluster)('a release', () => {
  test('is installed, with pods that the restricted standard lets in', async () => {
    expect(await release('install', 'model-gateway', {})).toContain('A first request:');
    const deployment = await getObject(namespace.name, 'deployment', 'model-gateway');
    expect(status(deployment)).toMatchObject({ readyReplicas: 2 });
    const [pod] = await getObjects(namespace.name, 'pods', pods);
    expect(pod?.spec).toMatchObject({ terminationGracePeriodSeconds: 330 });
    expect(JSON.stringify(pod?.spec)).not.toContain('kube-api-access');
  });

  test('finds its pods behind both Services', async () => {
    for (const [service, port] of [
      ['model-gateway', 8080],
      ['model-gateway-metrics', 9090],
    ] as const) {
      const slices = await getObjects(
        namespace.name,
        'endpointslices',
        `kubernetes.io/service-name=${service}`,
      );
      const [slice] = slices as unknown as { ports: { port: number }[]; endpoints: unknown[] }[];
      expect(slice?.ports.map((entry) => entry.port)).toEqual([port]);
      expect(slice?.endpoints).toHaveLength(2);
    }
  });

  test('keeps its pods when prices are edited', async () => {
    const before = await getObjects(namespace.name, 'pods', pods);
    const prices = [{ provider: 'openai', model: 'gpt-6-luna', input: '0.20', output: '0.90' }];
    await release('upgrade', 'model-gateway', { tables: { document: { prices } } });
    const tables = await getObject(namespace.name, 'configmap', 'model-gateway-tables');
    expect(tables.data?.['tables.yaml']).toContain('0.90');
    expect(names(await getObjects(namespace.name, 'pods', pods))).toEqual(names(before));
    const deployment = await getObject(namespace.name, 'deployment', 'model-gateway');
    expect(deployment.metadata.annotations?.['deployment.kubernetes.io/revision']).toBe('1');
  });

  test('stops an upgrade at tables that were edited by hand, until it is told which document counts', async () => {
    const patch = JSON.stringify({ data: { 'tables.yaml': 'edited: by hand' } });
    await must(
      kubectl([
        '-n',
        namespace.name,
        'patch',
        'configmap',
        'model-gateway-tables',
        '--type=merge',
        '-p',
        patch,
      ]),
    );
    await expect(release('upgrade', 'model-gateway', {})).rejects.toThrow('conflict');
    await release('upgrade', 'model-gateway', {}, ['--force-conflicts']);
    const tables = await getObject(namespace.name, 'configmap', 'model-gateway-tables');
    expect(tables.data?.['tables.yaml']).toContain('tiers:');
  });

  test('lets a node drain take one pod at a time', async () => {
    const [first = '', second = ''] = names(await getObjects(namespace.name, 'pods', pods));
    await untilDisruptionsAllowed(1);
    // The pod that comes instead finds no node.
    await must(kubectl(['cordon', 'fake-0']));
    try {
      expect(await evict(namespace.name, first)).toMatchObject({ code: 0 });
      await untilDisruptionsAllowed(0);
      expect((await evict(namespace.name, second)).err).toContain("violate the pod's disruption budget");
    } finally {
      await must(kubectl(['uncordon', 'fake-0']));
    }
  });

  test('replaces its pods when a boot setting changes, and goes back', async () => {
    await release('upgrade', 'model-gateway', { logs: { level: 'debug' } });
    const level = async () =>
      JSON.stringify((await getObject(namespace.name, 'deployment', 'model-gateway')).spec);
    expect(await level()).toContain('"debug"');
    await must(
      helm(['rollback', 'model-gateway', '2', '-n', namespace.name, '--wait', '--timeout', waitLimit]),
    );
    expect(await level()).not.toContain('"debug"');
  });

  test('leaves the replicas alone once the autoscaler has them', async () => {
    const autoscaling = { enabled: true, minReplicas: 2, inflightStreams: 100 };
    await release('upgrade', 'model-gateway', { autoscaling });
    await must(kubectl(['-n', namespace.name, 'scale', 'deployment/model-gateway', '--replicas=4']));
    await release('upgrade', 'model-gateway', { autoscaling, logs: { level: 'warn' } });
    const deployment = await getObject(namespace.name, 'deployment', 'model-gateway');
    expect(deployment.spec?.['replicas']).toBe(4);
    const scaler = await getObject(namespace.name, 'hpa', 'model-gateway');
    expect(scaler.spec?.['metrics']).toMatchObject([{ type: 'ContainerResource' }, { type: 'Pods' }]);
  });

  test('is gone after uninstall', async () => {
    await must(helm(['uninstall', 'model-gateway', '-n', namespace.name, '--wait', '--timeout', waitLimit]));
    expect(
      names(await getObjects(namespace.name, allKinds, 'app.kubernetes.io/instance=model-gateway')),
    ).toEqual([]);
  });
});

describe.runIf(isOwnCluster)('migrations.mode hook', () => {
  test('runs a Job to its end before the pods come, and again before an upgrade', async () => {
    const values = { migrations: { mode: 'hook' }, fullnameOverride: 'hooked' };
    await release('install', 'hooked', values);
    await release('upgrade', 'hooked', {
      ...values,
      sealing: { existingSecret: 'gateway-sealing', resealOnUpgrade: true },
    });
    // Both Jobs succeeded, so their hooks took them away.
    expect(names(await getObjects(namespace.name, 'jobs'))).toEqual([]);
    await must(helm(['uninstall', 'hooked', '-n', namespace.name, '--wait', '--timeout', waitLimit]));
    expect(names(await getObjects(namespace.name, allKinds, 'app.kubernetes.io/instance=hooked'))).toEqual(
      [],
    );
  });
});

test('one that cannot work is refused before anything is made', async () => {
  const args = ['install', 'refused', chart, '-n', namespace.name, '--values', '-'];
  const { code, err } = await helm(
    args,
    JSON.stringify({ ...base, drain: { terminationGracePeriodSeconds: 30 } }),
  );
  expect({ code, err }).toMatchObject({ code: 1, err: expect.stringContaining('streams would be cut') });
  expect(names(await getObjects(namespace.name, 'deployments'))).toEqual([]);
});
