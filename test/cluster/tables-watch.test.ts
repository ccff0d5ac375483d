/** The gateway follows its tables through the real API, with the rights that the chart gives and no others. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Namespace } from './cluster.ts';
import {
  accountConfig,
  chart,
  createNamespace,
  getObject,
  getObjects,
  helm,
  isOwnCluster,
  kubectl,
  must,
} from './cluster.ts';
import type { GatewayProcess, TablesState } from './support/gateway-process.ts';
import { startGatewayProcess } from './support/gateway-process.ts';

/** An edit is seen within a second, after an outage of the API within half a minute; this machine may be busy. */
const limit = { timeout: 50_000, interval: 200 };
const name = 'model-gateway-tables';

let namespace: Namespace;
let gateway: GatewayProcess;

beforeAll(async () => {
  namespace = await createNamespace();
  const values = {
    database: { existingSecret: 'gateway-database' },
    sealing: { existingSecret: 'gateway-sealing' },
    tables: { source: 'watch' },
    networkPolicy: { kubeApi: { cidrs: ['10.0.0.1/32'] } },
  };
  const args = ['install', 'model-gateway', chart, '-n', namespace.name, '--values', '-'];
  await must(helm(args, JSON.stringify(values)));
  const kubeconfig = await accountConfig(namespace.name, 'model-gateway');
  gateway = await startGatewayProcess(kubeconfig, `${namespace.name}/${name}`);
});

afterAll(async () => {
  await gateway?.stop();
  await namespace?.remove();
});

function edit(document: string): Promise<string> {
  const patch = JSON.stringify({ data: { 'tables.yaml': document } });
  const args = ['-n', namespace.name, 'patch', 'configmap', name, '--type=merge', '-p', patch];
  return must(kubectl(args));
}

function document(model: string): string {
  const one = `[{provider: sarvam, model: ${model}}]`;
  return `tiers: {cheap: ${one}, balanced: ${one}, premium: ${one}}`;
}

const untilTables = (state: Partial<TablesState>): Promise<void> =>
  vi.waitFor(async () => expect(await gateway.tables()).toMatchObject(state), limit);

test('an edit is taken into use', async () => {
  const { generation } = await gateway.tables();
  await edit(document('edited'));
  await untilTables({ generation: generation + 1, last_reload_ok: true });
});

test('a bad edit is refused, and an Event on the ConfigMap says where it is wrong', async () => {
  const { hash } = await gateway.tables();
  await edit('tiers: {}');
  await untilTables({ hash, last_reload_ok: false });
  await vi.waitFor(async () => {
    const events = JSON.stringify(await getObjects(namespace.name, 'events'));
    expect(events).toContain(name);
    expect(events).toContain('TablesRefused');
    expect(events).toContain('tiers.cheap');
  }, limit);
});

test('a good one after it is taken into use', async () => {
  const { generation } = await gateway.tables();
  await edit(document('mended'));
  await untilTables({ generation: generation + 1, last_reload_ok: true });
});

test('without its ConfigMap it keeps what it had, until there is one again', async () => {
  const before = await gateway.tables();
  const { data } = await getObject(namespace.name, 'configmap', name);
  await must(kubectl(['-n', namespace.name, 'delete', 'configmap', name]));
  await untilTables({ ...before, last_reload_ok: false });
  const again = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
  await must(kubectl(['-n', namespace.name, 'create', '-f', '-'], JSON.stringify(again)));
  await untilTables({ ...before, last_reload_ok: true });
  await edit(document('recreated'));
  await untilTables({ generation: before.generation + 1 });
});

describe.runIf(isOwnCluster)('an API server that is killed', () => {
  test('costs nothing; an edit right after its return is taken into use', async () => {
    const before = await gateway.tables();
    const isUp = async () => (await kubectl(['get', '--raw', '/readyz'])).code === 0;
    process.kill(apiServerPid(), 'SIGKILL');
    await vi.waitFor(async () => expect(await isUp()).toBe(false), limit);
    expect(await gateway.tables()).toEqual(before);
    await vi.waitFor(async () => expect(await isUp()).toBe(true), limit);
    await edit(document('after-the-outage'));
    await untilTables({ generation: before.generation + 1, last_reload_ok: true });
    expect(gateway.exitCode).toBeNull();
  }, 120_000);

  test('is followed by the controllers as well, which the next tests need', async () => {
    const inNamespace = (...args: string[]) => must(kubectl(['-n', namespace.name, ...args]));
    await inNamespace('rollout', 'restart', 'deployment/model-gateway');
    await inNamespace('rollout', 'status', 'deployment/model-gateway', '--timeout=45s');
  });
});

function apiServerPid(): number {
  const folder = dirname(process.env['KUBECONFIG'] ?? '');
  return Number(readFileSync(join(folder, 'kube-apiserver.pid'), 'utf8'));
}
