import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { run } from '../lib/children.mjs';
import { apiCertificate, writeIdentity } from './identity.mjs';
import { Parts } from './parts.mjs';
import { toolPath } from './tools.mjs';

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

/** Autoscalers look every second, so that tests see them act. */
const eager = { 'kube-controller-manager': ['--horizontal-pod-autoscaler-sync-period', '1s'] };

/**
 * A Kubernetes control plane on loopback, with its state and logs in `folder`: etcd, API server, controllers, scheduler,
 * and one fake node whose pods are ready at once. `{ kubeconfig, stop() }`. Throws LaunchError.
 */
export async function startControlPlane(folder) {
  const parts = new Parts(folder);
  let isStopping = false;
  const stop = () => {
    isStopping = true;
    return parts.stop();
  };
  /** An API server that is killed comes back, as that of a real cluster does; tests find its process id in a file. */
  const launch = (name, args) => {
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

/**
 * Brings up etcd, API server, controllers and scheduler, without a node, by `launch(name, arguments)`. `more` holds further
 * arguments of each program. Returns the path of a kubeconfig for each user. Throws LaunchError.
 */
export async function launchControlPlane({ folder, parts, launch, address, more = {} }) {
  chmodSync(folder, 0o700);
  const [etcd, etcdPeer, api] = [await freePort(), await freePort(), await freePort()];
  const identity = writeIdentity(folder, `https://${address}:${api}`);
  const start = (name, args) => launch(name, [...args, ...(more[name] ?? [])]);
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

/** `name` is the program that makes the node ready. Throws LaunchError. */
export function untilNodeReady(parts, kubeconfig, node, name) {
  const wait = ['wait', '--for=condition=Ready', `node/${node}`, '--timeout=1s'];
  return parts.waitFor(name, () => kubectl(kubeconfig, wait));
}

/** `{ code, output }` of a kubectl run with these rights. */
export function kubectl(kubeconfig, args) {
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  return run(toolPath('kubectl'), args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

function etcdArguments(folder, client, peer) {
  const clientUrl = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  return [
    ...['--data-dir', join(folder, 'etcd'), '--unsafe-no-fsync', '--log-level', 'warn'],
    ...['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
    ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
    ...['--initial-cluster', `default=${peerUrl}`],
  ];
}

function apiServerArguments(folder, address, port, etcd) {
  return [
    ...['--etcd-servers', `http://127.0.0.1:${etcd}`],
    ...['--bind-address', address, '--secure-port', `${port}`],
    ...['--advertise-address', address, '--cert-dir', join(folder, 'certificates')],
    ...['--token-auth-file', join(folder, 'tokens.csv'), '--authorization-mode', 'Node,RBAC'],
    ...['--service-account-issuer', 'https://kubernetes.default.svc'],
    ...['--service-account-key-file', join(folder, 'account.pub')],
    ...['--service-account-signing-key-file', join(folder, 'account.key')],
    ...['--service-cluster-ip-range', '10.96.0.0/16', '--profiling=false'],
  ];
}

function controllerArguments(folder, kubeconfig) {
  return [
    ...['--kubeconfig', kubeconfig, '--secure-port', '0', '--leader-elect=false'],
    ...['--use-service-account-credentials'],
    ...['--service-account-private-key-file', join(folder, 'account.key')],
    ...['--root-ca-file', apiCertificate(folder)],
  ];
}

function schedulerArguments(kubeconfig) {
  return ['--kubeconfig', kubeconfig, '--secure-port', '0', '--leader-elect=false'];
}

async function kwokArguments(kubeconfig) {
  const address = `127.0.0.1:${await freePort()}`;
  return [
    ...['--config', toolPath('kwok-stages.yaml'), '--kubeconfig', kubeconfig, '--server-address', address],
    ...['--manage-nodes-with-annotation-selector', 'kwok.x-k8s.io/node=fake'],
    ...['--node-lease-duration-seconds', '40'],
  ];
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
