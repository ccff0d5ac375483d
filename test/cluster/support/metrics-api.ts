import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { certificateAuthority } from '../../harness/servers/certificates.ts';
import { getObjects, kubectl, must, toDocuments } from '../cluster.ts';

/** What the gateways of the cluster do, all together; each of the running pods is told to have an equal share. */
export interface Load {
  /** Null: nobody measures it, as when the adapter or Prometheus is away. */
  streams: number | null;
  cpuMillicores: number;
}

export interface MetricsApi {
  /** Change it at will: the next answer has it. */
  readonly load: Load;
  close(): Promise<void>;
}

interface Pod {
  readonly metadata: { readonly name: string; readonly labels?: object };
  readonly spec: { readonly containers: readonly { readonly name: string }[] };
  readonly status: { readonly phase: string };
}

const groups = [
  { group: 'metrics.k8s.io', version: 'v1beta1' },
  { group: 'custom.metrics.k8s.io', version: 'v1beta2' },
] as const;
const streamsMetric = 'gw_inflight_streams';
const service = { name: 'gateway-test-metrics', namespace: 'kube-system' };

const podMetricsPath = /^\/apis\/metrics\.k8s\.io\/v1beta1\/namespaces\/([^/]+)\/pods$/;
const streamsPath = new RegExp(
  `^/apis/custom\\.metrics\\.k8s\\.io/v1beta2/namespaces/([^/]+)/pods/\\*/${streamsMetric}$`,
);

/**
 * Serves, through the cluster's own API, the two metrics APIs that autoscalers read: what metrics-server and a Prometheus
 * adapter do where there are kubelets and a Prometheus.
 */
export async function startMetricsApi(): Promise<MetricsApi> {
  const load: Load = { streams: 0, cpuMillicores: 0 };
  const server = createServer(certificateAuthority().issue(['localhost']), (request, response) => {
    answer(request, load).then(
      (body) => send(response, body === null ? 404 : 200, body ?? notFound),
      () => send(response, 500, notFound),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await must(kubectl(['apply', '--server-side', '-f', '-'], toDocuments(registration(port))));
  for (const { group, version } of groups)
    await must(
      kubectl(['wait', '--for=condition=Available', `apiservice/${version}.${group}`, '--timeout=40s']),
    );
  return {
    load,
    close: async () => {
      // First of all: a group that nobody serves keeps namespaces from being deleted.
      for (const { group, version } of groups) await kubectl(['delete', 'apiservice', `${version}.${group}`]);
      await kubectl(['-n', service.namespace, 'delete', 'service', service.name]);
      server.close();
      server.closeAllConnections();
    },
  };
}

const notFound = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };

/** The name of the Service leads to this process. */
function registration(port: number): object[] {
  const spec = { type: 'ExternalName', externalName: '127.0.0.1', ports: [{ port }] };
  const toHere = { apiVersion: 'v1', kind: 'Service', metadata: service, spec };
  const served = groups.map(({ group, version }) => ({
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `${version}.${group}` },
    spec: {
      ...{ group, version, groupPriorityMinimum: 100, versionPriority: 100 },
      insecureSkipTLSVerify: true,
      service: { ...service, port },
    },
  }));
  return [toHere, ...served];
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function answer({ url = '/' }: IncomingMessage, load: Load): Promise<object | null> {
  const { pathname, searchParams } = new URL(url, 'https://localhost');
  const path = decodeURIComponent(pathname);
  if (path === '/apis/metrics.k8s.io/v1beta1')
    return resources('metrics.k8s.io/v1beta1', 'pods', 'PodMetrics');
  if (path === '/apis/custom.metrics.k8s.io/v1beta2')
    return resources('custom.metrics.k8s.io/v1beta2', `pods/${streamsMetric}`, 'MetricValueList');
  const selector = searchParams.get('labelSelector') ?? '';
  const measured = podMetricsPath.exec(path)?.[1];
  if (measured !== undefined) return podMetrics(await runningPods(measured, selector), load.cpuMillicores);
  const counted = streamsPath.exec(path)?.[1];
  if (counted === undefined || load.streams === null) return null;
  return streamCounts(counted, await runningPods(counted, selector), load.streams);
}

function resources(groupVersion: string, name: string, kind: string): object {
  const resource = { name, kind, singularName: '', namespaced: true, verbs: ['get', 'list'] };
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: [resource] };
}

async function runningPods(namespace: string, selector: string): Promise<Pod[]> {
  const pods = (await getObjects(namespace, 'pods', selector)) as unknown as Pod[];
  return pods.filter(({ status }) => status.phase === 'Running');
}

/** The API's times have whole seconds. */
const now = (): string => `${new Date().toISOString().slice(0, 19)}Z`;

function podMetrics(pods: readonly Pod[], cpuMillicores: number): object {
  const share = `${Math.round(cpuMillicores / Math.max(pods.length, 1))}m`;
  const items = pods.map(({ metadata, spec }) => ({
    metadata,
    timestamp: now(),
    window: '1s',
    containers: spec.containers.map(({ name }) => ({
      name,
      usage: { cpu: name === 'model-gateway' ? share : '0', memory: '128Mi' },
    })),
  }));
  return { kind: 'PodMetricsList', apiVersion: 'metrics.k8s.io/v1beta1', metadata: {}, items };
}

function streamCounts(namespace: string, pods: readonly Pod[], streams: number): object {
  const items = pods.map(({ metadata }) => ({
    describedObject: { kind: 'Pod', apiVersion: 'v1', namespace, name: metadata.name },
    metric: { name: streamsMetric },
    timestamp: now(),
    value: `${Math.round((streams * 1000) / pods.length)}m`,
  }));
  return { kind: 'MetricValueList', apiVersion: 'custom.metrics.k8s.io/v1beta2', metadata: {}, items };
}
