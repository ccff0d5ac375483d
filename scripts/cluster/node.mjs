import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../lib/children.mjs';
import { LaunchError } from '../lib/project.mjs';
import { openCgroup } from './cgroups.mjs';
import { kubectl, launchControlPlane, untilNodeReady } from './control-plane.mjs';
import { hasOverlay } from './images.mjs';
import { nodeAddress, openNamespaces, podNetwork } from './namespaces.mjs';
import {
  aggregatedMetrics,
  containerdToml,
  coreFile,
  kubeletConfig,
  podNetworkConfig,
} from './node-files.mjs';
import { Parts } from './parts.mjs';
import { toolPath } from './tools.mjs';

const nodeName = 'node-0';

/**
 * A Kubernetes cluster of one real node, its control plane beside it, in namespaces of its own: containerd, kubelet,
 * kube-proxy, CoreDNS, metrics-server. `pauseArchive` is the image of `ImageBuilder.buildPause`.
 * `{ kubeconfig, importImage(archive), stop() }`. Throws LaunchError.
 */
export async function startNode(folder, programs, pauseArchive) {
  const cgroup = openCgroup(`model-gateway-node-${process.pid}`);
  let namespaces;
  const stop = async () => {
    await namespaces?.close();
    await cgroup.remove();
  };
  try {
    namespaces = await openNamespaces(folder, programs.env);
    const parts = new Parts(folder, programs.env);
    const node = { folder, parts, cgroup: cgroup.name, programs, enter: namespaces.enter };
    node.launch = (name, args, program = toolPath(name)) =>
      parts.launch(name, namespaces.enter[0], [...namespaces.enter.slice(1), program, ...args]);
    await startContainerd(node);
    await importImage(node, pauseArchive);
    const identity = await startControlPlane(node);
    await startNodeParts(node, identity);
    return { kubeconfig: identity.admin, importImage: (archive) => importImage(node, archive), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The API server's own certificate for the kubelet and for metrics-server: both trust it itself. */
async function makeClientCertificate({ folder, programs }) {
  const [key, certificate] = [join(folder, 'client.key'), join(folder, 'client.crt')];
  const subject = '/O=system:masters/CN=kube-apiserver';
  const args = [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
    ...['-subj', subject, '-addext', 'extendedKeyUsage=clientAuth', '-keyout', key, '-out', certificate],
  ];
  const { code, output } = await run('openssl', args, {
    env: programs.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (code !== 0) throw new LaunchError(`openssl failed: ${output.trim()}`);
  return { key, certificate };
}

async function startControlPlane(node) {
  const { folder, parts, launch } = node;
  const { key, certificate } = await makeClientCertificate(node);
  const more = {
    'kube-apiserver': [
      ...['--kubelet-client-certificate', certificate, '--kubelet-client-key', key],
      ...['--kubelet-preferred-address-types', 'InternalIP'],
      ...['--proxy-client-cert-file', certificate, '--proxy-client-key-file', key],
      ...['--requestheader-client-ca-file', certificate, '--requestheader-allowed-names', 'kube-apiserver'],
      ...[
        '--requestheader-username-headers',
        'X-Remote-User',
        '--requestheader-group-headers',
        'X-Remote-Group',
      ],
      ...['--requestheader-extra-headers-prefix', 'X-Remote-Extra-'],
    ],
    // So that a test sees it act within seconds, but not on the work of a start.
    'kube-controller-manager': [
      ...['--horizontal-pod-autoscaler-sync-period', '5s'],
      ...['--horizontal-pod-autoscaler-initial-readiness-delay', '5s'],
      ...['--horizontal-pod-autoscaler-cpu-initialization-period', '30s'],
    ],
  };
  return launchControlPlane({ folder, parts, launch, address: nodeAddress, more });
}

const socketOf = (folder) => join(folder, 'containerd.sock');

async function startContainerd(node) {
  const { folder, programs, launch, parts } = node;
  const network = join(folder, 'network');
  mkdirSync(network);
  writeFileSync(join(network, 'pods.conflist'), podNetworkConfig(folder));
  const config = join(folder, 'containerd.toml');
  const snapshotter = hasOverlay(folder) ? 'overlayfs' : 'native';
  writeFileSync(config, containerdToml({ folder, network, snapshotter, socket: socketOf(folder), programs }));
  launch('containerd', ['--config', config], 'containerd');
  await parts.waitFor('containerd', () => ctr(node, ['version']));
}

/** `{ code, output }` of containerd's client. */
function ctr({ folder, enter, programs }, args) {
  const command = [...enter, 'ctr', '--address', socketOf(folder), '--namespace', 'k8s.io', ...args];
  return run(command[0], command.slice(1), { env: programs.env, stdio: ['ignore', 'pipe', 'pipe'] });
}

async function importImage(node, archive) {
  const { code, output } = await ctr(node, ['images', 'import', archive]);
  if (code !== 0) throw new LaunchError(`${archive} could not be imported: ${output.trim()}`);
}

async function startNodeParts({ folder, parts, launch, cgroup }, identity) {
  const certificate = join(folder, 'client.crt');
  const [kubelet, dns, objects] = ['kubelet.json', 'Corefile', 'metrics.json'].map((name) =>
    join(folder, name),
  );
  writeFileSync(kubelet, kubeletConfig({ folder, certificate, cgroup, socket: socketOf(folder) }));
  writeFileSync(dns, coreFile(identity.admin));
  writeFileSync(objects, aggregatedMetrics());
  launch('kubelet', [
    ...['--config', kubelet, '--kubeconfig', identity['system:node:node-0'], '--hostname-override', nodeName],
    ...[
      '--node-ip',
      nodeAddress,
      '--root-dir',
      join(folder, 'kubelet'),
      '--cert-dir',
      join(folder, 'kubelet-pki'),
    ],
  ]);
  launch('kube-proxy', [
    ...['--kubeconfig', identity['system:kube-proxy'], '--hostname-override', nodeName],
    ...['--proxy-mode', 'iptables', '--cluster-cidr', podNetwork, '--conntrack-max-per-core', '0'],
    ...['--conntrack-tcp-timeout-established', '0', '--conntrack-tcp-timeout-close-wait', '0'],
  ]);
  launch('coredns', ['-conf', dns]);
  launch('metrics-server', [
    ...['--kubeconfig', identity.admin, '--authentication-kubeconfig', identity.admin],
    ...['--authorization-kubeconfig', identity.admin, '--kubelet-insecure-tls'],
    ...['--kubelet-preferred-address-types', 'InternalIP', '--metric-resolution', '10s'],
    ...['--kubelet-request-timeout', '5s', '--bind-address', nodeAddress, '--secure-port', '4443'],
    ...['--cert-dir', join(folder, 'metrics-pki')],
  ]);
  await parts.waitFor('kube-apiserver', () => kubectl(identity.admin, ['apply', '-f', objects]));
  await untilNodeReady(parts, identity.admin, nodeName, 'kubelet');
}
