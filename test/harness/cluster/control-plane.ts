import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Ended } from '../stage/children.ts';
import { runQuietly } from '../stage/children.ts';
import type { Identity } from './identity.ts';
import { apiCertificate, writeIdentity } from './identity.ts';
import { Parts } from './parts.ts';
import { toolPath } from './tools.ts';

/** A node that exists in the API only; kwok plays its kubelet. */
const fakeNode = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: 'fake-0',
    annotations: { 'kwok.x-k8s.io/node': 'fake' },
    labels: {
      'kubernetes.io/hostname': 'fake-0',
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
    },
  },
  status: {
    allocatable: { cpu: '32', memory: '256Gi', pods: '110' },
    capacity: { cpu: '32', memory: '256Gi', pods: '110' },
  },
};

/** Starts one of the programs by its name. */
export type Launch = (name: string, args: readonly string[]) => void;

type MoreArguments = Readonly<Record<string, readonly string[]>>;

interface ControlPlaneSetup {
  readonly folder: string;
  readonly parts: Parts;
  readonly launch: Launch;
  /** Where the API server listens. */
  readonly address: string;
  /** Further arguments of each program. */
  readonly more?: MoreArguments;
}

export interface ControlPlane {
  /** The administrator's. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

/** Autoscalers look every second, so that tests see them act. */
const eager: MoreArguments = { 'kube-controller-manager': ['--horizontal-pod-autoscaler-sync-period', '1s'] };

/**
 * A Kubernetes control plane on loopback, with its state and logs in `folder`: etcd, API server, controllers,
 * scheduler, and one fake node whose pods are ready at once. Throws StageError.
 */
export async function startControlPlane(folder: string): Promise<ControlPlane> {
  const parts = new Parts(folder);
  let isStopping = false;
  const stop = () => {
    isStopping = true;
    return parts.stop();
  };
  /** An API server that is killed comes back, as that of a real cluster does; tests find its process id in a file. */
  const launch: Launch = (name, args) => {
    const child = parts.launch(name, toolPath(name), args);
    if (name !== 'kube-apiserver') return;
    writeFileSync(join(folder, 'kube-apiserver.pid'), `${child.pid}`);
    child.once('exit', (_code, signal) => {
      if (signal === 'SIGKILL' && !isStopping) launch(name, args);
    });
  };
  try {
    const { admin } = await launchControlPlane({ folder, parts, launch, address: '127.0.0.1', more: eager });
    launch('kwok', await kwokArguments(admin));
    writeFileSync(join(folder, 'node.json'), JSON.stringify(fakeNode));
    await kubectl(admin, ['apply', '-f', join(folder, 'node.json')]);
    await untilNodeReady(parts, admin, 'fake-0', 'kwok');
    return { kubeconfig: admin, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Brings up etcd, API server, controllers and scheduler, without a node. Throws StageError. */
export async function launchControlPlane(setup: ControlPlaneSetup): Promise<Identity> {
  const { folder, parts, launch, address, more = {} } = setup;
  chmodSync(folder, 0o700);
  const [etcd, etcdPeer, api] = [await freePort(), await freePort(), await freePort()];
  const identity = writeIdentity(folder, `https://${address}:${api}`);
  const start: Launch = (name, args) => launch(name, [...args, ...(more[name] ?? [])]);
  start('etcd', etcdArguments(folder, etcd, etcdPeer));
  start('kube-apiserver', apiServerArguments(folder, address, api, etcd));
  await parts.waitFor('kube-apiserver', () => kubectl(identity.admin, ['get', '--raw', '/readyz']));
  start('kube-controller-manager', controllerArguments(folder, identity['system:kube-controller-manager']));
  start('kube-scheduler', schedulerArguments(identity['system:kube-scheduler']));
  await parts.waitFor('kube-controller-manager', () =>
    kubectl(identity.admin, ['-n', 'default', 'get', 'serviceaccount', 'default']),
  );
  return identity;
}

/** `name` is the program that makes the node ready. Throws StageError. */
export function untilNodeReady(parts: Parts, kubeconfig: string, node: string, name: string): Promise<void> {
  const wait = ['wait', '--for=condition=Ready', `node/${node}`, '--timeout=1s'];
  return parts.waitFor(name, () => kubectl(kubeconfig, wait));
}

/** Runs kubectl with these rights. */
export function kubectl(kubeconfig: string, args: readonly string[]): Promise<Ended> {
  return runQuietly(toolPath('kubectl'), args, { env: { ...process.env, KUBECONFIG: kubeconfig } });
}

function etcdArguments(folder: string, client: number, peer: number): string[] {
  const clientUrl = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  return [
    ...['--data-dir', join(folder, 'etcd'), '--unsafe-no-fsync', '--log-level', 'warn'],
    ...['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
    ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
    ...['--initial-cluster', `default=${peerUrl}`],
  ];
}

/** Of both families: a Service may ask for either, and gets IPv4 unless it does. */
const serviceNetworks = '10.96.0.0/16,fd00:10:96::/108';

function apiServerArguments(folder: string, address: string, port: number, etcd: number): string[] {
  return [
    ...['--etcd-servers', `http://127.0.0.1:${etcd}`],
    ...['--bind-address', address, '--secure-port', `${port}`],
    ...['--advertise-address', address, '--cert-dir', join(folder, 'certificates')],
    ...['--token-auth-file', join(folder, 'tokens.csv'), '--authorization-mode', 'Node,RBAC'],
    ...['--service-account-issuer', 'https://kubernetes.default.svc'],
    ...['--service-account-key-file', join(folder, 'account.pub')],
    ...['--service-account-signing-key-file', join(folder, 'account.key')],
    ...['--service-cluster-ip-range', serviceNetworks, '--profiling=false'],
  ];
}

function controllerArguments(folder: string, kubeconfig: string): string[] {
  return [
    ...['--kubeconfig', kubeconfig, '--secure-port', '0', '--leader-elect=false'],
    ...['--use-service-account-credentials'],
    ...['--service-account-private-key-file', join(folder, 'account.key')],
    ...['--root-ca-file', apiCertificate(folder)],
  ];
}

function schedulerArguments(kubeconfig: string): string[] {
  return ['--kubeconfig', kubeconfig, '--secure-port', '0', '--leader-elect=false'];
}

async function kwokArguments(kubeconfig: string): Promise<string[]> {
  const address = `127.0.0.1:${await freePort()}`;
  return [
    ...['--config', toolPath('kwok-stages.yaml'), '--kubeconfig', kubeconfig, '--server-address', address],
    ...['--manage-nodes-with-annotation-selector', 'kwok.x-k8s.io/node=fake'],
    ...['--node-lease-duration-seconds', '40'],
  ];
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
