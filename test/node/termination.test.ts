/** A pod ends: told to, in the middle of a stream, or by force, with rows that no database has yet. */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { kubectl, must } from '../cluster/cluster.ts';
import { chatBody, chatOk, chatPath, logRows, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { takeApart } from '../harness/gateway/sse-reader.ts';
import { eventually } from '../harness/measure/eventually.ts';
import type { FakeVendor } from '../harness/vendors/fake-vendor.ts';
import type { Door } from './support/door.ts';
import { openDoor } from './support/door.ts';
import { tellMeasured } from './support/measured.ts';
import type { Pod } from './support/pods.ts';
import { isReady, memoryOf, onlyPod, podsOf, untilPod } from './support/pods.ts';
import type { Release } from './support/release.ts';
import { ownRelease, rolledOut, sharedRelease, untilServed } from './support/release.ts';
import { forPods, writeSecret } from './support/stores.ts';
import { clientAt, endlessStream, openAiUser, startVendorForPods } from './support/users.ts';

let vendor: FakeVendor;

beforeAll(async () => {
  vendor = await startVendorForPods();
});

afterAll(async () => {
  await vendor?.close();
});

test('kubectl delete pod lets a stream come to its end, and the process ends with 0', async () => {
  const release = await sharedRelease();
  const user = await openAiUser(release.url);
  const held = endlessStream();
  vendor.when('hold', held.script);
  const [pod] = (await podsOf(release)) as [Pod];
  const { name } = pod.metadata;
  const inNamespace = (...args: string[]) => must(kubectl(['-n', release.namespace, ...args]));
  // The kubelet removes a pod as soon as it has ended; a finalizer keeps what it says of the end.
  const finalizers = (list: readonly string[]) =>
    inNamespace(
      'patch',
      'pod',
      name,
      '--type=merge',
      '-p',
      JSON.stringify({ metadata: { finalizers: list } }),
    );
  await finalizers(['tests.model-gateway/keep']);

  const body = chatBody({ stream: true, messages: [{ role: 'user', content: 'hold' }] });
  const reader = await clientAt(`http://${pod.status.podIP}:8080`, user).stream(chatPath, body);
  expect(await reader.nextContent()).toBe('tick ');
  await inNamespace('delete', 'pod', name, '--wait=false');
  const deletedAtMs = Date.now();
  const rest = reader.rest();
  await refusesConnections(pod.status.podIP);
  held.end();

  const stream = takeApart(await rest);
  expect(stream).toMatchObject({ done: true, error: null });
  expect(stream.gatewayChunks).toHaveLength(1);
  expect(await logRowsOnceThere(user.client, 1)).toMatchObject([{ status: 'success' }]);
  const ended = await untilPod(
    release.namespace,
    '',
    ({ metadata, status }) =>
      metadata.name === name && status.containerStatuses?.[0]?.state.terminated !== undefined,
  );
  await finalizers([]);
  const { exitCode, finishedAt } = ended.status.containerStatuses?.[0]?.state.terminated ?? {};
  expect(exitCode).toBe(0);
  const seconds = Math.round((Date.parse(finishedAt ?? '') - deletedAtMs) / 1000);
  tellMeasured(`delete pod: ended ${seconds} s later, grace ${pod.spec.terminationGracePeriodSeconds} s`);
  expect(seconds).toBeLessThan(pod.spec.terminationGracePeriodSeconds);
  await rolledOut(release.namespace, release.name);
});

/** SIGTERM has come once the listener is closed; before, the kubelet sleeps its preStop. */
async function refusesConnections(address: string): Promise<void> {
  await eventually(async () => {
    const response = await fetch(`http://${address}:9090/readyz`);
    return ((await response.json()) as { status: string }).status === 'draining' ? true : undefined;
  }, 60_000);
}

describe('kill -9', () => {
  const postgresPort = 5433;
  let release: Release & { remove(): Promise<void> };
  let door: Door;

  beforeAll(async () => {
    const url = inject('databaseUrl');
    door = await openDoor(postgresPort, url);
    await writeSecret(inject('namespace'), 'own-database', { url: forPods(url, postgresPort) });
    release = await ownRelease('crashing', { replicaCount: 1, database: { existingSecret: 'own-database' } });
  });

  afterAll(async () => {
    await release?.remove();
    await door?.close();
  });

  test('the memory limit and the heap below it are those of the values', async () => {
    const { metadata, spec } = await onlyPod(release);
    const { limitMiB, usedMiB } = await memoryOf(release.namespace, metadata.name, 'model-gateway');
    expect(limitMiB).toBe(512);
    expect(usedMiB).toBeLessThan(256);
    expect(JSON.stringify(spec['containers'])).toContain('--max-old-space-size=307');
  });

  test('of the process loses no row and doubles none, not even rows that Postgres could not take', async () => {
    const user = await openAiUser(release.url);
    const pod = await onlyPod(release);
    await Promise.all(Array.from({ length: 10 }, () => chatOk(user.client)));
    await door.close();
    await Promise.all(Array.from({ length: 10 }, () => chatOk(user.client)));
    killFirstProcess(pod);
    await untilRestarted(release, 1);
    door = await openDoor(postgresPort, inject('databaseUrl'));
    const again = await untilRestarted(release, 1, isReady);
    await untilServed(release.url);
    expect(again.metadata.uid).toBe(pod.metadata.uid);
    await chatOk(user.client);
    const rows = await logRowsOnceThere(user.client, 21);
    expect(rows.map(({ status }) => status)).toEqual(Array.from({ length: 21 }, () => 'success'));
    // The next start would replay again what the first replay left behind.
    killFirstProcess(again);
    await untilRestarted(release, 2, isReady);
    await untilServed(release.url);
    await chatOk(user.client);
    await logRowsOnceThere(user.client, 22);
    expect(await logRows(user.client)).toHaveLength(22);
  });
});

function untilRestarted(release: Release, times: number, isSo = (_pod: Pod) => true): Promise<Pod> {
  const selector = `app.kubernetes.io/instance=${release.name}`;
  const hasRestarted = (pod: Pod) => pod.status.containerStatuses?.[0]?.restartCount === times;
  return untilPod(release.namespace, selector, (pod) => hasRestarted(pod) && isSo(pod));
}

/** From outside, since a container's first process cannot be killed from within. */
function killFirstProcess(pod: Pod): void {
  const id = pod.status.containerStatuses?.[0]?.containerID.replace(/^.*:\/\//, '') ?? 'none';
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const isOurs = readFileSync(`/proc/${entry}/cgroup`, 'utf8').includes(id);
      const isFirst = /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${entry}/status`, 'utf8'));
      if (isOurs && isFirst) return void process.kill(Number(entry), 'SIGKILL');
    } catch {
      // it ended meanwhile
    }
  }
  throw new Error('the first process is not found');
}
