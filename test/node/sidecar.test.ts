/** The demo of `k8s/overlays/sidecar-demo`: an application and a Job with the gateway beside them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { newServiceKey } from '../../src/core/account/service-key.ts';
import { root } from '../chart/chart-files.ts';
import { kubectl, must } from '../cluster/cluster.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { tellMeasured } from './support/measured.ts';
import { execIn, isReady, logOf, memoryOf, podsBy, untilPod } from './support/pods.ts';
import { rolledOut } from './support/release.ts';
import { writeSecret } from './support/stores.ts';

const namespace = 'model-gateway-sidecar';
const overlay = 'k8s/overlays/sidecar-demo';
const streams = 10;

let pod: string;

beforeAll(async () => {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const metadata = { name: namespace, labels };
  const object = { apiVersion: 'v1', kind: 'Namespace', metadata };
  await must(kubectl(['apply', '-f', '-'], JSON.stringify(object)));
  const key = { provider: 'self_hosted', api_key: 'unused', base_url: 'http://127.0.0.1:8081' };
  await writeSecret(namespace, 'assistant-gateway', {
    'service-key': newServiceKey(Buffer.alloc(32, 7)),
    'provider-keys.yaml': JSON.stringify([{ ...key, declared_region: 'demo' }]),
  });
  await must(kubectl(['apply', '-k', overlay]));
  await rolledOut(namespace, 'assistant');
  pod = (await untilPod(namespace, 'app.kubernetes.io/name=assistant', isReady)).metadata.name;
});

afterAll(async () => {
  await kubectl(['delete', 'namespace', namespace, '--wait=false']);
});

test('the application reaches the gateway on loopback, and nobody does from outside', async () => {
  const log = await eventually(async () => {
    const text = await logOf(namespace, pod, '-c', 'assistant');
    return text === '' ? undefined : text;
  }, 30_000);
  expect(log).toContain('You said: "What time is it?"');
  const [{ status }] = (await podsBy(namespace, 'app.kubernetes.io/name=assistant')) as [
    Awaited<ReturnType<typeof untilPod>>,
  ];
  await expect(fetch(`http://${status.podIP}:8080/v1/models`)).rejects.toThrow('fetch failed');
  expect((await fetch(`http://${status.podIP}:9090/readyz`)).status).toBe(200);
});

test('the Job ends, although the gateway beside it would not', async () => {
  await must(kubectl(['-n', namespace, 'wait', '--for=condition=Complete', 'job/report', '--timeout=45s']));
  const ended = await untilPod(
    namespace,
    'app.kubernetes.io/name=report',
    ({ status }) => status.phase === 'Succeeded',
  );
  const exits = ended.status.initContainerStatuses?.map(({ name, state }) => [
    name,
    state.terminated?.exitCode,
  ]);
  expect(exits).toEqual([
    ['demo-model', 0],
    ['model-gateway', 0],
  ]);
});

interface ContainerPatch {
  readonly value: { readonly resources: Record<'requests' | 'limits', { memory: string }> };
}

test('its footprint, idle and with 10 streams, is within its requests and limits', async () => {
  const idle = await memoryOf(namespace, pod, 'model-gateway');
  // A second process in a container that is made for one: what it asks is not to take the room of both.
  const small = ['--max-semi-space-size=2', '--max-old-space-size=32'];
  const load = execIn(namespace, pod, 'assistant', 'node', ...small, '-e', askInParallel);
  let isOver = false;
  void load
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
    });
  let busy = idle;
  while (!isOver) {
    const now = await memoryOf(namespace, pod, 'model-gateway');
    if (now.anonymousMiB > busy.anonymousMiB) busy = now;
  }
  expect((await load).trim()).toBe(`${streams * 3} streams ended with [DONE]`);
  const patch = parse(readFileSync(join(root, overlay, 'gateway-sidecar/pod.yaml'), 'utf8')) as [
    ContainerPatch,
  ];
  const { requests, limits } = patch[0].value.resources;
  tellMeasured(
    `sidecar: idle ${idle.anonymousMiB} MiB (${idle.usedMiB} with its files), ` +
      `with ${streams} streams ${busy.anonymousMiB} MiB (${busy.usedMiB}); requests ${requests.memory}, limit ${limits.memory}`,
  );
  expect(idle.limitMiB).toBe(Number.parseInt(limits.memory, 10));
  expect(idle.anonymousMiB).toBeLessThanOrEqual(Number.parseInt(requests.memory, 10));
  expect(busy.usedMiB).toBeLessThan(Number.parseInt(limits.memory, 10));
});

/** Runs in the application's container: three rounds of streams at once. */
const askInParallel = `
const headers = { authorization: 'Bearer ' + process.env.GATEWAY_KEY, 'content-type': 'application/json',
  'x-gateway-override-model': 'self_hosted:demo' };
const body = JSON.stringify({ model: 'gw/balanced', stream: true, messages: [{ role: 'user', content: 'Go on.' }] });
const ask = async () => {
  const answer = await fetch('http://127.0.0.1:8080/v1/chat/completions', { method: 'POST', headers, body });
  return (await answer.text()).trimEnd().endsWith('data: [DONE]');
};
let whole = 0;
for (let round = 0; round < 3; round += 1)
  whole += (await Promise.all(Array.from({ length: ${streams} }, ask))).filter(Boolean).length;
console.log(whole + ' streams ended with [DONE]');
`;
