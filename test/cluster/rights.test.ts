/** What the pods may do with the Kubernetes API: one ConfigMap in watch mode, nothing otherwise. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Namespace } from './cluster.ts';
import { accountConfig, chart, createNamespace, helm, kubectl, must } from './cluster.ts';

let namespace: Namespace;

beforeAll(async () => {
  namespace = await createNamespace();
  const install = async (name: string, values: object) => {
    const stores = {
      database: { existingSecret: 'gateway-database' },
      sealing: { existingSecret: 'gateway-sealing' },
    };
    const args = ['install', name, chart, '-n', namespace.name, '--values', '-'];
    await must(helm(args, JSON.stringify({ ...stores, fullnameOverride: name, ...values })));
  };
  await install('watching', {
    tables: { source: 'watch' },
    networkPolicy: { kubeApi: { cidrs: ['10.0.0.1/32'] } },
  });
  await install('mounted', {});
});

afterAll(async () => {
  await namespace?.remove();
});

async function can(account: string, verb: string, resource: string): Promise<boolean> {
  const user = `system:serviceaccount:${namespace.name}:${account}`;
  const { out } = await kubectl([
    '-n',
    namespace.name,
    'auth',
    'can-i',
    verb,
    ...resource.split(' '),
    '--as',
    user,
  ]);
  return out.trim() === 'yes';
}

describe('in watch mode', () => {
  test.each([
    ['get', 'configmap/watching-tables', true],
    ['list', 'configmap/watching-tables', true],
    ['watch', 'configmap/watching-tables', true],
    ['create', 'events', true],
    ['patch', 'events', false],
    ['create', 'events.events.k8s.io', true],
    ['get', 'configmap/mounted-tables', false],
    ['list', 'configmaps', false],
    ['watch', 'configmaps', false],
    ['update', 'configmap/watching-tables', false],
    ['patch', 'configmap/watching-tables', false],
    ['delete', 'configmap/watching-tables', false],
    ['create', 'configmaps', false],
    ['get', 'secret/gateway-sealing', false],
    ['list', 'secrets', false],
    ['get', 'pods', false],
    ['create', 'pods', false],
    ['create', 'pods --subresource=exec', false],
    ['list', 'namespaces', false],
    ['delete', 'events', false],
    ['create', 'serviceaccounts --subresource=token', false],
  ])('%s %s: %s', async (verb, resource, allowed) => {
    expect(await can('watching', verb, resource)).toBe(allowed);
  });

  test('a token of the account lists with the field selector, and is refused without', async () => {
    const account = await accountConfig(namespace.name, 'watching');
    const list = (query: string) => {
      const path = `/api/v1/namespaces/${namespace.name}/configmaps${query}`;
      return kubectl(['get', '--raw', path, '--kubeconfig', account]);
    };
    expect((await list('?fieldSelector=metadata.name%3Dwatching-tables')).out).toContain('tables.yaml');
    expect((await list('')).err).toMatch(/forbidden/i);
    expect((await list('?fieldSelector=metadata.name%3Dmounted-tables')).err).toMatch(/forbidden/i);
  });
});

describe('with mounted tables', () => {
  test.each([
    ['get', 'configmap/mounted-tables'],
    ['list', 'configmaps'],
    ['get', 'secret/gateway-sealing'],
    ['create', 'events'],
    ['get', 'pods'],
  ])('%s %s is refused', async (verb, resource) => {
    expect(await can('mounted', verb, resource)).toBe(false);
  });
});
