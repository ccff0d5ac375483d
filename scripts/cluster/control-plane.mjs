import { spawn } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { run } from '../lib/children.mjs';
import { LaunchError } from '../lib/project.mjs';
import { toolPath } from './tools.mjs';

/** How long a part may take to come up; a busy machine with two cores needs about 15 s. */
const READY_MS = 120_000;
/** A part that ignores SIGTERM for this long is killed. */
const STOP_MS = 10_000;

/** Groups decide about rights, so three tokens are all the identities that are needed. */
const users = {
  admin: 'system:masters',
  'system:kube-controller-manager': '',
  'system:kube-scheduler': '',
};

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

/**
 * A Kubernetes control plane on loopback, with its state and logs in `folder`: etcd, API server, controllers, scheduler,
 * and one fake node whose pods are ready at once. `{ kubeconfig, stop() }`. Throws LaunchError.
 */
export async function startControlPlane(folder) {
  const children = [];
  const stop = () => stopAll(children);
  try {
    const kubeconfig = await start(folder, children);
    return { kubeconfig, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function start(folder, children) {
  chmodSync(folder, 0o700);
  const [etcd, etcdPeer, api] = [await freePort(), await freePort(), await freePort()];
  const identity = writeIdentity(folder, api);
  const launch = (name, args) => children.push(launchPart(folder, name, args));
  launch('etcd', etcdArguments(folder, etcd, etcdPeer));
  launch('kube-apiserver', apiServerArguments(folder, api, etcd));
  await waitFor(folder, children, 'kube-apiserver', () =>
    kubectl(identity.admin, ['get', '--raw', '/readyz']),
  );
  launch('kube-controller-manager', controllerArguments(folder, identity['system:kube-controller-manager']));
  launch('kube-scheduler', schedulerArguments(identity['system:kube-scheduler']));
  await waitFor(folder, children, 'kube-controller-manager', () =>
    kubectl(identity.admin, ['-n', 'default', 'get', 'serviceaccount', 'default']),
  );
  launch('kwok', await kwokArguments(identity.admin));
  writeFileSync(join(folder, 'node.json'), JSON.stringify(fakeNode));
  await kubectl(identity.admin, ['apply', '-f', join(folder, 'node.json')]);
  await waitFor(folder, children, 'kwok', () =>
    kubectl(identity.admin, ['wait', '--for=condition=Ready', 'node/fake-0', '--timeout=1s']),
  );
  return identity.admin;
}

/** Tokens, service-account key and one kubeconfig per user; returns the kubeconfigs' paths. */
function writeIdentity(folder, port) {
  mkdirSync(join(folder, 'certificates'));
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  writeFileSync(join(folder, 'account.key'), privateKey.export({ type: 'sec1', format: 'pem' }));
  writeFileSync(join(folder, 'account.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
  const rows = [];
  const paths = {};
  for (const [name, group] of Object.entries(users)) {
    const token = randomBytes(24).toString('hex');
    rows.push([token, name, name, ...(group === '' ? [] : [`"${group}"`])].join(','));
    paths[name] = join(folder, `${name.replace(/^.*:/, '')}.kubeconfig`);
    const cluster = { server: `https://127.0.0.1:${port}`, 'certificate-authority': certificate(folder) };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster }],
      users: [{ name, user: { token } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: name } }],
      'current-context': 'test',
    };
    writeFileSync(paths[name], JSON.stringify(config), { mode: 0o600 });
  }
  writeFileSync(join(folder, 'tokens.csv'), `${rows.join('\n')}\n`, { mode: 0o600 });
  return paths;
}

/** The API server makes it itself, for 127.0.0.1. */
const certificate = (folder) => join(folder, 'certificates', 'apiserver.crt');

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

function apiServerArguments(folder, port, etcd) {
  return [
    ...[
      '--etcd-servers',
      `http://127.0.0.1:${etcd}`,
      '--bind-address',
      '127.0.0.1',
      '--secure-port',
      `${port}`,
    ],
    ...['--advertise-address', '127.0.0.1', '--cert-dir', join(folder, 'certificates')],
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
    ...[
      '--use-service-account-credentials',
      '--service-account-private-key-file',
      join(folder, 'account.key'),
    ],
    ...['--root-ca-file', certificate(folder)],
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

function launchPart(folder, name, args) {
  const log = openSync(join(folder, `${name}.log`), 'a');
  const child = spawn(toolPath(name), args, { stdio: ['ignore', log, log], detached: true });
  child.once('error', () => undefined); // told by the wait that follows
  return { name, child };
}

async function waitFor(folder, children, name, attempt) {
  const end = Date.now() + READY_MS;
  for (;;) {
    if ((await attempt()).code === 0) return;
    const dead = children.find(({ child }) => child.exitCode !== null || child.pid === undefined);
    if (dead !== undefined || Date.now() > end) {
      const culprit = dead?.name ?? name;
      const log = readFileSync(join(folder, `${culprit}.log`), 'utf8')
        .trim()
        .split('\n')
        .slice(-5)
        .join('\n');
      throw new LaunchError(`${culprit} did not come up:\n${log}`);
    }
    await delay(200);
  }
}

function kubectl(kubeconfig, args) {
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  return run(toolPath('kubectl'), args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Last started, first stopped, so that nobody complains about the API server's end. */
async function stopAll(children) {
  for (const { child } of children.toReversed()) await stopPart(child);
}

function stopPart(child) {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return undefined;
  return new Promise((done) => {
    const killer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    child.once('close', () => {
      clearTimeout(killer);
      done();
    });
    child.kill('SIGTERM');
  });
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
