import { inject } from 'vitest';
import type { Values } from '../../chart/chart-files.ts';
import { chart, getObject, helm, kubectl, must, waitLimit } from '../../cluster/cluster.ts';
import { tables } from '../../harness/gateway/tables.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { hostAddress, podNetwork } from './door.ts';

/** Where the pods look for OpenAI: a door that the file opens to its fake vendor. */
export const vendorPort = 8000;
const nodeAddress = '10.123.0.2';

/** What a platform team sets, with the fake vendor in place of OpenAI. */
export const values: Values = {
  image: { pullPolicy: 'IfNotPresent' },
  database: { existingSecret: 'gateway-database' },
  redis: { existingSecret: 'gateway-redis' },
  sealing: { existingSecret: 'gateway-sealing' },
  migrations: { mode: 'hook' },
  service: { type: 'NodePort' },
  vendors: { openai: `http://${hostAddress}:${vendorPort}` },
  selfHosted: {
    allow: [
      { cidr: `${hostAddress}/32`, ports: [vendorPort] },
      // The demo model of helm test.
      { cidr: podNetwork, ports: [8081] },
    ],
  },
  // The stage registers users as fast as it can.
  registration: { perMinute: 0 },
  // A shared machine that stands still for a second is no overload: what is counted here is what a rollout refuses.
  overload: { maxEventLoopDelayMs: 0 },
  tests: { podCidrs: [podNetwork] },
  tables: { document: tables() },
};

/** Runs Helm for a release of the chart; values come after the common ones. What an earlier try installed goes first. */
export async function runHelm(
  verb: 'install' | 'upgrade',
  name: string,
  namespace: string,
  own: Values = {},
  more: readonly string[] = [],
): Promise<string> {
  const args = [verb, name, chart, '-n', namespace, ...more, '--values', '-'];
  if (verb === 'install')
    await must(helm(['uninstall', name, '-n', namespace, '--ignore-not-found', '--wait']));
  return must(helm(args, JSON.stringify({ ...values, ...own })));
}

/** Resolves once the Deployment's newest pods are all there. */
export async function rolledOut(namespace: string, name: string): Promise<void> {
  await must(kubectl(['-n', namespace, 'rollout', 'status', `deployment/${name}`, `--timeout=${waitLimit}`]));
}

/** The node's rules for a Service follow what the API says of its pods by up to some seconds. */
export async function untilServed(url: string): Promise<void> {
  const ask = () =>
    fetch(`${url}/v1/models`).then(
      ({ status }) => (status === 401 ? true : undefined),
      () => undefined,
    );
  await eventually(ask, 30_000);
}

/** Where the Service of a release answers on the node, once it does: `http://host:port`. */
export async function nodePortUrl(namespace: string, name: string): Promise<string> {
  const service = await getObject(namespace, 'service', name);
  const ports = (service.spec?.['ports'] ?? []) as { nodePort: number }[];
  const url = `http://${nodeAddress}:${ports[0]?.nodePort}`;
  await untilServed(url);
  return url;
}

export interface Release {
  readonly namespace: string;
  readonly name: string;
  readonly url: string;
}

/** The release that the files share, installed by the first that asks. */
export async function sharedRelease(): Promise<Release> {
  const release = { namespace: inject('namespace'), name: 'model-gateway' };
  const status = await helm(['status', release.name, '-n', release.namespace]);
  if (status.code !== 0) await runHelm('install', release.name, release.namespace);
  await rolledOut(release.namespace, release.name);
  return { ...release, url: await nodePortUrl(release.namespace, release.name) };
}

/** A further release of the same stores, with values of its own; `remove` uninstalls it. */
export async function ownRelease(name: string, own: Values): Promise<Release & { remove(): Promise<void> }> {
  const namespace = inject('namespace');
  await runHelm('install', name, namespace, { ...own, fullnameOverride: name });
  await rolledOut(namespace, name);
  return {
    ...{ namespace, name, url: await nodePortUrl(namespace, name) },
    remove: async () => {
      await must(helm(['uninstall', name, '-n', namespace]));
    },
  };
}
