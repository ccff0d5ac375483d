/** The autoscaler reads the gateway's own container, through a real metrics-server, and acts. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { getObject } from '../cluster/cluster.ts';
import { chatOk } from '../harness/gateway/chat.ts';
import { eventually } from '../harness/measure/eventually.ts';
import type { FakeVendor } from '../harness/vendors/fake-vendor.ts';
import { tellMeasured } from './support/measured.ts';
import type { Release } from './support/release.ts';
import { ownRelease } from './support/release.ts';
import { openAiUser, startVendorForPods } from './support/users.ts';

/** The first measurement takes two rounds of the kubelet and of metrics-server. */
const metricMs = 90_000;
const scaleMs = 90_000;
const callers = 4;
/** Percent of the request. */
const target = 70;

interface ScalerStatus {
  readonly currentReplicas: number;
  readonly desiredReplicas: number;
  readonly currentMetrics?: readonly {
    readonly type: string;
    readonly containerResource?: {
      readonly container: string;
      readonly name: string;
      readonly current: { readonly averageUtilization?: number };
    };
  }[];
}

let vendor: FakeVendor;
let release: Release & { remove(): Promise<void> };

beforeAll(async () => {
  vendor = await startVendorForPods();
  release = await ownRelease('scaled', {
    // So small a request that a few callers are a load.
    resources: { requests: { cpu: '50m', memory: '256Mi' }, limits: { memory: '512Mi' } },
    autoscaling: { enabled: true, minReplicas: 1, maxReplicas: 3, cpuUtilization: target },
  });
});

afterAll(async () => {
  await release?.remove();
  await vendor?.close();
});

const scaler = async (): Promise<ScalerStatus> =>
  ((await getObject(release.namespace, 'hpa', release.name)) as unknown as { status: ScalerStatus }).status;

test('the CPU of the container is measured, and an idle pod asks for no company', async () => {
  const utilization = await eventually(async () => {
    const { currentMetrics } = await scaler();
    const found = currentMetrics?.find(({ type }) => type === 'ContainerResource')?.containerResource;
    const percent = found?.current.averageUtilization ?? Number.POSITIVE_INFINITY;
    expect(found ?? { container: 'model-gateway', name: 'cpu' }).toMatchObject({
      container: 'model-gateway',
      name: 'cpu',
    });
    return percent < target ? percent : undefined;
  }, metricMs);
  expect(utilization).toBeLessThan(target);
  // Its start may have been a load on a busy machine, and a pod that came for it stays for minutes.
  expect((await scaler()).currentReplicas).toBeLessThan(3);
});

test('load brings more pods', async () => {
  const user = await openAiUser(release.url);
  let isOver = false;
  const load = Array.from({ length: callers }, async () => {
    while (!isOver) await chatOk(user.client);
  });
  try {
    const begin = performance.now();
    const status = await eventually(async () => {
      const now = await scaler();
      return now.desiredReplicas > 1 && now.currentReplicas > 1 ? now : undefined;
    }, scaleMs);
    const percent = status.currentMetrics?.[0]?.containerResource?.current.averageUtilization;
    tellMeasured(
      `autoscaler: ${status.currentReplicas} pods after ${Math.round((performance.now() - begin) / 1000)} s at ${percent} % of the request`,
    );
    expect(status.desiredReplicas).toBeGreaterThan(1);
  } finally {
    isOver = true;
    await Promise.allSettled(load);
  }
});
