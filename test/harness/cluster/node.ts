import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Ended } from '../stage/children.ts';
import { runQuietly } from '../stage/children.ts';
import { StageError } from '../stage/project.ts';
import { openCgroup } from './cgroups.ts';
import type { ControlPlane } from './control-plane.ts';
import { kubectl, launchControlPlane, untilNodeReady } from './control-plane.ts';
import type { Identity } from './identity.ts';
import { hasOverlay } from './images.ts';
import type { Namespaces } from './namespaces.ts';
import { nodeAddress, openNamespaces, podNetwork } from './namespaces.ts';
import {
  aggregatedMetrics,
  containerdToml,
  coreFile,
  kubeletConfig,
  podNetworkConfig,
} from './node-files.ts';
import type { NodePrograms } from './node-programs.ts';
import { Parts } from './parts.ts';
import { toolPath } from './tools.ts';

const nodeName = 'node-0';

export interface NodeCluster extends ControlPlane {
  /** Throws StageError. */
  importImage(archive: string): Promise<void>;
}

/** What its programs are started with. */
interface Node {
  readonly folder: string;
  readonly parts: Parts;
  /** Name of the cgroup below which the kubelet makes its own. */
  readonly cgroup: string;
  readonly programs: NodePrograms;
  readonly enter: Namespaces['enter'];
  /** Inside the namespaces; a program that was built unless another is named. */
  readonly launch: (name: string, args: readonly string[], program?: string) => void;
}

/**
 * A Kubernetes cluster of one real node, its control plane beside it, in namespaces of its own: containerd, kubelet,
 * kube-proxy, CoreDNS, metrics-server. `pauseArchive` is the image of `ImageBuilder.buildPause`. Throws StageError.
 */
export async function startNode(
  folder: string,
  programs: NodePrograms,
  pauseArchive: string,
): Promise<NodeCluster> {
  const cgroup = openCgroup(`model-gateway-node-${process.pid}`);
  let namespaces: Namespaces | undefined;
  const stop = async () => {
    await namespaces?.close();
    await cgroup.remove();
  };
  try {
    namespaces = await openNamespaces(folder, programs.env);
    const parts = new Parts(folder, programs.env);
    const { enter } = namespaces;
    const [entry, ...into] = enter;
    const launch: Node['launch'] = (name, args, program = toolPath(name)) =>
      parts.launch(name, entry, [...into, program, ...args]);
    const node: Node = { folder, parts, cgroup: cgroup.name, programs, enter, launch };
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
async function makeClientCertificate({ folder, programs }: Node) {
  const [key, certificate] = [join(folder, 'client.key'), join(folder, 'client.crt')];
  const subject = '/O=system:masters/CN=kube-apiserver';
  const args = [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
    ...['-subj', subject, '-addext', 'extendedKeyUsage=clientAuth', '-keyout', key, '-out', certificate],
  ];
  const { code, output } = await runQuietly('openssl', args, { env: programs.env });
  if (code !== 0) throw new StageError(`openssl failed: ${output.trim()}`);
  return { key, certificate };
}

async function startControlPlane(node: Node): Promise<Identity> {
  const { folder, parts, launch } = node;
  const { key, certificate } = await makeClientCertificate(node);
  const more = {
    'kube-apiserver': [
      ...['--kubelet-client-certificate', certificate, '--kubelet-client-key', key],
      ...['--kubelet-preferred-address-types', 'InternalIP'],
      ...['--proxy-client-cert-file', certificate, '--proxy-client-key-file', key],
      ...['--requestheader-client-ca-file', certificate, '--requestheader-allowed-names', 'kube-apiserver'],
      ...['--requestheader-username-headers', 'X-Remote-User'],
      ...['--requestheader-group-headers', 'X-Remote-Group'],
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

const socketOf = (folder: string) => join(folder, 'containerd.sock');

async function startContainerd(node: Node): Promise<void> {
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

/** Runs containerd's client. */
function ctr({ folder, enter, programs }: Node, args: readonly string[]): Promise<Ended> {
  const [entry, ...into] = enter;
  const command = ['ctr', '--address', socketOf(folder), '--namespace', 'k8s.io', ...args];
  return runQuietly(entry, [...into, ...command], { env: programs.env });
}

async function importImage(node: Node, archive: string): Promise<void> {
  const { code, output } = await ctr(node, ['images', 'import', archive]);
  if (code !== 0) throw new StageError(`${archive} could not be imported: ${output.trim()}`);
}

async function startNodeParts(node: Node, identity: Identity): Promise<void> {
  const { folder, parts, launch, cgroup } = node;
  const place = (name: string) => join(folder, name);
  const certificate = place('client.crt');
  const [kubelet, dns, objects] = [place('kubelet.json'), place('Corefile'), place('metrics.json')];
  writeFileSync(kubelet, kubeletConfig({ folder, certificate, cgroup, socket: socketOf(folder) }));
  writeFileSync(dns, coreFile(identity.admin));
  writeFileSync(objects, aggregatedMetrics());
  launch('kubelet', [
    ...['--config', kubelet, '--kubeconfig', identity['system:node:node-0'], '--hostname-override', nodeName],
    ...['--node-ip', nodeAddress, '--root-dir', place('kubelet'), '--cert-dir', place('kubelet-pki')],
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
    ...['--cert-dir', place('metrics-pki')],
  ]);
  await parts.waitFor('kube-apiserver', () => kubectl(identity.admin, ['apply', '-f', objects]));
  await untilNodeReady(parts, identity.admin, nodeName, 'kubelet');
}
