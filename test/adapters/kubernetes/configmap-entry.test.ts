/** Which entry of a watched ConfigMap is the document: the one that is named, and no other in its place. */
import { KubeConfig } from '@kubernetes/client-node';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { watchTablesConfigMap } from '../../../src/adapters/kubernetes/configmap-tables.ts';
import type { TablesSource } from '../../../src/adapters/tables/last-good-tables.ts';
import { configMap, FakeTablesApi } from '../../faults/tables-api.ts';
import { tables } from '../../harness/gateway/tables.ts';

const limit = { timeout: 20_000, interval: 20 };

const document = (model: string): string =>
  JSON.stringify(tables({ tiers: { ...tables().tiers, cheap: [{ provider: 'sarvam', model }] } }));

let api: FakeTablesApi;
let source: TablesSource | undefined;

beforeEach(async () => {
  api = new FakeTablesApi(document('of tables.yaml'));
  await api.start();
});

afterEach(async () => {
  source?.close();
  source = undefined;
  await api.stop();
});

async function follow(entry?: string): Promise<TablesSource> {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromString(api.kubeconfig());
  const named = entry === undefined ? configMap : { ...configMap, entry };
  source = await watchTablesConfigMap({ ...named, kubeConfig, wallMs: Date.now });
  return source;
}

const modelOf = ({ current }: TablesSource) => current().tier('cheap')[0]?.model;

test('without a name it is tables.yaml, whatever lies beside it', async () => {
  api.beside.set('routing.yaml', document('of routing.yaml'));
  expect(modelOf(await follow())).toBe('of tables.yaml');
});

test('the one that is named is read, and missed when it is gone', async () => {
  api.beside.set('routing.yaml', document('of routing.yaml'));
  const followed = await follow('routing.yaml');
  expect(modelOf(followed)).toBe('of routing.yaml');
  await vi.waitFor(() => expect(api.openWatches).toBe(1), limit);
  api.beside.delete('routing.yaml');
  api.edit(document('of tables.yaml, edited'));
  await vi.waitFor(() => expect(followed.status().lastReloadOk).toBe(false), limit);
  expect(followed.status().lastProblem).toBe('the ConfigMap has no entry "routing.yaml"');
  expect(modelOf(followed)).toBe('of routing.yaml');
});

test.each(['routing.yaml', 'constructor'])(
  'the start fails where there is only another than %s, and names it',
  async (entry) => {
    await expect(follow(entry)).rejects.toThrow(
      `ConfigMap gateways/tables: the ConfigMap has no entry "${entry}"`,
    );
  },
);
