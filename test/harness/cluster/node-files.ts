import { join } from 'node:path';
import { pauseName } from './images.ts';
import { hostAddress, nodeAddress, podNetwork } from './namespaces.ts';
import type { NodePrograms } from './node-programs.ts';

/** The configuration files of a node's programs, as texts. */

/** A wire per pod and no bridge, so that all traffic passes the node's own packet filter. */
export function podNetworkConfig(folder: string): string {
  const ranges = [[{ subnet: podNetwork }]];
  const ipam = {
    type: 'host-local',
    dataDir: join(folder, 'pod-addresses'),
    ranges,
    routes: [{ dst: '0.0.0.0/0' }],
  };
  const plugins = [
    { type: 'ptp', ipMasq: false, ipam },
    { type: 'portmap', capabilities: { portMappings: true } },
  ];
  return JSON.stringify({ cniVersion: '1.0.0', name: 'pods', plugins });
}

/** A registry of the tests, as the node reaches it: the only one that it may ask without TLS. */
export const nodeRegistry = `${hostAddress}:5000`;

interface ContainerdPlaces {
  readonly folder: string;
  /** Folder with the network's configuration. */
  readonly network: string;
  readonly snapshotter: string;
  readonly socket: string;
  readonly programs: NodePrograms;
}

export function containerdToml(places: ContainerdPlaces): string {
  const { folder, network, snapshotter, socket, programs } = places;
  return `version = 2
root = "${join(folder, 'containerd')}"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "${socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseName}"
  # Where root may not lower the badness of a process, runc would end without a word.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "${snapshotter}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."${nodeRegistry}"]
    endpoint = ["http://${nodeRegistry}"]
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${join(programs.folder, 'usr/lib/cni')}"
    conf_dir = "${network}"
`;
}

interface KubeletPlaces {
  readonly folder: string;
  /** File with the certificate of those who may ask the kubelet. */
  readonly certificate: string;
  readonly cgroup: string;
  readonly socket: string;
}

export function kubeletConfig({ folder, certificate, cgroup, socket }: KubeletPlaces): string {
  return JSON.stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: nodeAddress,
    authentication: {
      x509: { clientCAFile: certificate },
      webhook: { enabled: true },
      anonymous: { enabled: false },
    },
    authorization: { mode: 'Webhook' },
    containerRuntimeEndpoint: `unix://${socket}`,
    cgroupRoot: cgroup,
    cgroupDriver: 'cgroupfs',
    failCgroupV1: false,
    failSwapOn: false,
    clusterDNS: [nodeAddress],
    clusterDomain: 'cluster.local',
    resolvConf: '',
    healthzPort: 0,
    // A machine that is nearly full is none of the tests' business.
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    podLogsDir: join(folder, 'pod-logs'),
    // Six times as often as usual, so that a mounted ConfigMap follows an edit within seconds.
    syncFrequency: '10s',
  });
}

export function coreFile(kubeconfig: string): string {
  return `cluster.local:53 in-addr.arpa:53 {
  bind ${nodeAddress}
  kubernetes cluster.local in-addr.arpa {
    kubeconfig ${kubeconfig} test
    ttl 5
  }
}
`;
}

/** Tells the API server that metrics-server runs beside it and not in a pod. */
export function aggregatedMetrics(): string {
  const service = { name: 'metrics-server', namespace: 'kube-system', port: 4443 };
  const items = [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: service.name, namespace: service.namespace },
      spec: { type: 'ExternalName', externalName: nodeAddress, ports: [{ port: service.port }] },
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1beta1.metrics.k8s.io' },
      spec: {
        ...{ group: 'metrics.k8s.io', version: 'v1beta1', groupPriorityMinimum: 100, versionPriority: 100 },
        ...{ insecureSkipTLSVerify: true, service },
      },
    },
  ];
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}
