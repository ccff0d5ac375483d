/** The autoscaler moved by metrics, and node drains at the fewest replicas: real controllers over pods of a fake node. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
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
  toDocuments,
} from './cluster.ts';
import type { MetricsApi } from './support/metrics-api.ts';
import { startMetricsApi } from './support/metrics-api.ts';

/** The autoscaler of our control plane looks every second; the machine may be busy. */
const limit = { timeout: 40_000, interval: 300 };
const minReplicas = 3;
/** Nodes of this file alone, so that a drain concerns nobody else. */
const firstNode = 'drained-a';
const secondNode = 'drained-b';
const nodes = [firstNode, secondNode];
const gateways = 'app.kubernetes.io/component=gateway';
const onOurNodes: Values = {
  nodeSelector: { 'gateway-test': 'drain' },
  tolerations: [{ key: 'gateway-test', operator: 'Exists' }],
};

let namespace: Namespace;
let metrics: MetricsApi;

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
}

const base: Values = {
  database: { existingSecret: 'gateway-database' },
  sealing: { existingSecret: 'gateway-sealing' },
  ...onOurNodes,
  // Asks for far more than the gateway and does nothing: it must not dilute the gateway's share.
  sidecars: [
    {
      name: 'idle',
      image: 'idle',
      resources: { requests: { cpu: '4' } },
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    },
  ],
};
const autoscaling = { enabled: true, minReplicas, maxReplicas: 12, cpuUtilization: 70, inflightStreams: 100 };
/** The shipped one waits ten minutes, and then two for each pod. */
const hasty = {
  scaleDown: { stabilizationWindowSeconds: 0, policies: [{ type: 'Pods', value: 2, periodSeconds: 1 }] },
};

function fakeNode(name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
      labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'gateway-test': 'drain' },
    },
    spec: { taints: [{ key: 'gateway-test', effect: 'NoSchedule' }] },
    status: {
      allocatable: { cpu: '200', memory: '256Gi', pods: '110' },
      capacity: { cpu: '200', memory: '256Gi', pods: '110' },
    },
  };
}

function upgrade(values: Values): Promise<string> {
  const args = ['upgrade', '--install', 'model-gateway', chart, '-n', namespace.name, '--values', '-'];
  return must(helm(args, JSON.stringify({ ...base, ...values })));
}

async function statusOf(kind: 'hpa' | 'deployment'): Promise<Values> {
  const object = (await getObject(namespace.name, kind, 'model-gateway')) as KubernetesObject & {
    status: Values;
  };
  return object.status;
}

async function condition(type: string): Promise<Condition | undefined> {
  const conditions = ((await statusOf('hpa'))['conditions'] ?? []) as Condition[];
  return conditions.find((one) => one.type === type);
}

/** The Deployment has this many pods, all ready, and the autoscaler wants no others. */
function untilReplicas(count: number): Promise<void> {
  return vi.waitFor(async () => {
    expect(await statusOf('hpa')).toMatchObject({ desiredReplicas: count, currentReplicas: count });
    expect(await statusOf('deployment')).toMatchObject({ replicas: count, readyReplicas: count });
  }, limit);
}

/** The pods start anew, on the first node; the second one takes no pod until it is uncordoned. */
async function gatherOnFirstNode(count: number): Promise<void> {
  await must(kubectl(['cordon', secondNode]));
  await must(kubectl(['-n', namespace.name, 'delete', 'pods', '-l', gateways]));
  await untilReplicas(count);
}

const isOnFirstNode = ({ spec }: KubernetesObject): boolean => spec?.['nodeName'] === firstNode;

beforeAll(async () => {
  if (!isOwnCluster) return;
  metrics = await startMetricsApi();
  await must(kubectl(['apply', '--server-side', '-f', '-'], toDocuments(nodes.map(fakeNode))));
  await must(
    kubectl(['wait', '--for=condition=Ready', ...nodes.map((name) => `node/${name}`), '--timeout=40s']),
  );
  namespace = await createNamespace();
});

afterAll(async () => {
  await namespace?.remove();
  await metrics?.close();
  if (isOwnCluster) await kubectl(['delete', 'node', ...nodes, '--wait=false']);
});

describe.runIf(isOwnCluster)('the autoscaler', () => {
  test('brings a first install to the fewest replicas', async () => {
    await upgrade({ autoscaling });
    await untilReplicas(minReplicas);
  });

  test('follows the streams in flight up', async () => {
    metrics.load.streams = 700;
    await untilReplicas(7);
  });

  test('keeps its pods for a while when the streams are gone', async () => {
    metrics.load.streams = 0;
    await vi.waitFor(async () => {
      expect(await condition('AbleToScale')).toMatchObject({ status: 'True', reason: 'ScaleDownStabilized' });
    }, limit);
    expect(await statusOf('deployment')).toMatchObject({ replicas: 7 });
  });

  test('goes back to the fewest replicas and not below', async () => {
    await upgrade({ autoscaling: { ...autoscaling, behavior: hasty } });
    await untilReplicas(minReplicas);
    await vi.waitFor(async () => {
      expect(await condition('ScalingLimited')).toMatchObject({ status: 'True', reason: 'TooFewReplicas' });
    }, limit);
  });

  test('follows the cpu of the gateway, which an idle container beside it does not dilute', async () => {
    // 0.7 × 250m is wanted of each.
    metrics.load.cpuMillicores = 8 * 175;
    await untilReplicas(8);
  });

  test('takes no pod away while streams cannot be counted, but still adds some', async () => {
    metrics.load.streams = null;
    metrics.load.cpuMillicores = 0;
    await vi.waitFor(async () => {
      expect(await condition('ScalingActive')).toMatchObject({
        status: 'False',
        reason: 'FailedGetPodsMetric',
      });
    }, limit);
    expect(await statusOf('deployment')).toMatchObject({ replicas: 8 });
    metrics.load.cpuMillicores = 10 * 175;
    await untilReplicas(10);
  });

  test('takes no more than the most replicas', async () => {
    metrics.load.streams = 100_000;
    await untilReplicas(autoscaling.maxReplicas);
  });
});

describe.runIf(isOwnCluster)('a node drain', () => {
  test.each([2, 3])(
    'with %i replicas, the fewest, takes one pod at a time and comes to its end',
    async (fewest) => {
      Object.assign(metrics.load, { streams: 0, cpuMillicores: 0 });
      await upgrade({ autoscaling: { ...autoscaling, minReplicas: fewest, behavior: hasty } });
      await gatherOnFirstNode(fewest);
      try {
        const drained = kubectl(['drain', firstNode, '--delete-emptydir-data', '--timeout=45s']);
        await vi.waitFor(async () => {
          expect(await statusOf('deployment')).toMatchObject({ readyReplicas: fewest - 1 });
        }, limit);
        // The successor of the first pod has no node yet.
        const ready = (await getObjects(namespace.name, 'pods', gateways)).find(isOnFirstNode);
        const refused = await evict(namespace.name, ready?.metadata.name ?? '');
        expect(refused.err).toContain("violate the pod's disruption budget");
        await must(kubectl(['uncordon', secondNode]));
        const { code, out } = await drained;
        expect(code).toBe(0);
        expect(out.match(/^pod\/model-gateway-\S+ evicted$/gm)).toHaveLength(fewest);
        await untilReplicas(fewest);
      } finally {
        await must(kubectl(['uncordon', firstNode, secondNode]));
      }
    },
  );
});
