/** The tables followed through the real API, with the rights that the chart gives and no others. */
import { KubeConfig } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { watchTablesConfigMap } from '../../src/adapters/kubernetes/configmap-tables.ts';
import type { TablesSource } from '../../src/adapters/last-good-tables.ts';
import type { Namespace } from './cluster.ts';
import { accountConfig, chart, createNamespace, getObjects, helm, kubectl, must } from './cluster.ts';

/** An edit is seen within a second; this machine may be busy. */
const limit = { timeout: 20_000, interval: 200 };

let namespace: Namespace;
let tables: TablesSource;

beforeAll(async () => {
  namespace = await createNamespace();
  const values = {
    database: { existingSecret: 'gateway-database' },
    sealing: { existingSecret: 'gateway-sealing' },
    tables: { source: 'watch' },
    networkPolicy: { kubeApi: { cidrs: ['10.0.0.1/32'] } },
  };
  await must(
    helm(['install', 'model-gateway', chart, '-n', namespace.name, '--values', '-'], JSON.stringify(values)),
  );
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(await accountConfig(namespace.name, 'model-gateway'));
  tables = await watchTablesConfigMap({
    namespace: namespace.name,
    name: 'model-gateway-tables',
    kubeConfig,
    wallMs: Date.now,
    onReload: () => undefined,
    onProblem: () => undefined,
  });
});

afterAll(async () => {
  tables?.close();
  await namespace?.remove();
});

function edit(document: string): Promise<string> {
  const patch = JSON.stringify({ data: { 'tables.yaml': document } });
  return must(
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
}

const one = '[{provider: sarvam, model: sarvam-105b}]';
const document = `tiers: {cheap: ${one}, balanced: ${one}, premium: ${one}}`;

test('an edit is taken into use', async () => {
  const before = tables.status().generation;
  await edit(document);
  await vi.waitFor(() => {
    expect(tables.status()).toMatchObject({ generation: before + 1, lastReloadOk: true });
  }, limit);
});

test('a bad edit is refused, and an Event on the ConfigMap says why', async () => {
  const before = tables.status();
  await edit('tiers: {}');
  await vi.waitFor(() => {
    expect(tables.status().lastReloadOk).toBe(false);
  }, limit);
  expect(tables.status().hash).toBe(before.hash);
  await vi.waitFor(async () => {
    const events = JSON.stringify(await getObjects(namespace.name, 'events'));
    expect(events).toContain('model-gateway-tables');
    expect(events).toContain('tiers.cheap');
  }, limit);
});
