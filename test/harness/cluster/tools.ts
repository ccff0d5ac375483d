import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runQuietly } from '../stage/children.ts';
import { inCache, StageError } from '../stage/project.ts';

interface Program {
  /** Folder of the module that pins its version. */
  readonly module: string;
  readonly package: string;
  /** For the linker. */
  readonly flags: string;
}

interface Document {
  readonly module: string;
  readonly folders: readonly string[];
  readonly files: RegExp;
}

/** The Go modules that pin the programs; their go.sum files are the lock. */
const modules = join(import.meta.dirname, 'go');

const kubernetes = 'v1.36.3';
const kubernetesVersion = [
  `-X k8s.io/component-base/version.gitVersion=${kubernetes}`,
  '-X k8s.io/component-base/version.gitMajor=1',
  '-X k8s.io/component-base/version.gitMinor=36',
].join(' ');

const ofKubernetes = (name: string): Program => ({
  module: 'kubernetes',
  package: `k8s.io/kubernetes/cmd/${name}`,
  flags: kubernetesVersion,
});
const besideKubernetes = (name: string, flags = ''): Program => ({
  module: 'kubernetes',
  package: name,
  flags,
});
const ofReleases = (name: string): Program => ({ module: 'release', package: name, flags: '' });

/** The versions stand in the modules' go.mod. */
const programs = {
  helm: besideKubernetes('helm.sh/helm/v4/cmd/helm', '-X helm.sh/helm/v4/internal/version.version=v4.2.4'),
  kubectl: ofKubernetes('kubectl'),
  etcd: { module: 'etcd', package: 'go.etcd.io/etcd/server/v3', flags: '' },
  'kube-apiserver': ofKubernetes('kube-apiserver'),
  'kube-controller-manager': ofKubernetes('kube-controller-manager'),
  'kube-scheduler': ofKubernetes('kube-scheduler'),
  kwok: besideKubernetes('sigs.k8s.io/kwok/cmd/kwok'),
  kubelet: ofKubernetes('kubelet'),
  'kube-proxy': ofKubernetes('kube-proxy'),
  coredns: besideKubernetes('./coredns'),
  pause: besideKubernetes('./pause'),
  'metrics-server': besideKubernetes('sigs.k8s.io/metrics-server/cmd/metrics-server'),
  actionlint: ofReleases('github.com/rhysd/actionlint/cmd/actionlint'),
  cosign: ofReleases('github.com/sigstore/cosign/v3/cmd/cosign'),
  registry: ofReleases('./registry'),
  'osv-scanner': {
    module: 'scanner',
    package: 'github.com/google/osv-scanner/v2/cmd/osv-scanner',
    flags: '',
  },
} satisfies Record<string, Program>;

/** YAML that is taken out of modules: file → the module and those of its files that belong into it. */
const documents = {
  'kwok-stages.yaml': {
    module: 'sigs.k8s.io/kwok@v0.8.0',
    folders: [
      'kustomize/stage/node/fast',
      'kustomize/stage/node/heartbeat-with-lease',
      'kustomize/stage/pod/fast',
    ],
    files: /^(node|pod)-.*\.yaml$/,
  },
  'prometheus-operator-crds.yaml': {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    folders: ['example/prometheus-operator-crd'],
    files: /_(servicemonitors|prometheusrules)\.yaml$/,
  },
  'keda-crds.yaml': {
    module: 'github.com/kedacore/keda/v2@v2.21.0',
    folders: ['config/crd/bases'],
    files: /_scaledobjects\.yaml$/,
  },
  'external-secrets-crds.yaml': {
    module: 'github.com/external-secrets/external-secrets@v1.3.2',
    folders: ['config/crds/bases'],
    files: /^external-secrets\.io_externalsecrets\.yaml$/,
  },
  'gateway-api-crds.yaml': {
    module: 'sigs.k8s.io/gateway-api@v1.4.0',
    folders: ['config/crd/standard'],
    files: /_httproutes\.yaml$/,
  },
} satisfies Record<string, Document>;

type DocumentName = keyof typeof documents;
export type ToolName = keyof typeof programs | DocumentName;

const isDocument = (name: ToolName): name is DocumentName => name in documents;

/** What tests on a cluster of their own need to speak to it, and the control plane itself. */
const clusterPrograms: readonly ToolName[] = [
  'helm',
  'kubectl',
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
];
/** A control plane with a fake node, and the kinds of others. */
export const toolNames: readonly ToolName[] = [
  ...clusterPrograms,
  'kwok',
  ...(Object.keys(documents) as DocumentName[]),
];
/** A control plane with a real node. */
export const nodeToolNames: readonly ToolName[] = [
  ...clusterPrograms,
  'kubelet',
  'kube-proxy',
  'coredns',
  'pause',
  'metrics-server',
  'registry',
];
/** What makes a release, and judges it. */
export const releaseToolNames: readonly ToolName[] = [
  'helm',
  'cosign',
  'registry',
  'actionlint',
  'osv-scanner',
];

/** Where the programs are kept between runs; remove the folder to build them anew. */
export function toolsFolder(): string {
  return process.env['GW_CLUSTER_TOOLS'] ?? inCache('cluster-tools');
}

/** The program's path, whether or not it has been built. */
export function toolPath(name: string): string {
  return join(toolsFolder(), name);
}

/**
 * Builds those of the named programs that are missing, from the Go module proxy (about five minutes in all for a
 * cold build cache). Throws StageError.
 */
export async function buildTools(names: readonly ToolName[]): Promise<void> {
  const missing = names.filter((name) => !existsSync(toolPath(name)));
  if (missing.length === 0) return;
  mkdirSync(toolsFolder(), { recursive: true });
  for (const name of missing) {
    const begin = Date.now();
    console.log(`Building ${name} ...`);
    await (isDocument(name) ? collectDocument(name) : buildTool(name));
    console.log(`Built ${name} in ${Math.round((Date.now() - begin) / 1000)} s.`);
  }
}

async function buildTool(name: keyof typeof programs): Promise<void> {
  const program = programs[name];
  const unfinished = join(toolsFolder(), `.${name}.${process.pid}`);
  const args = ['build', '-trimpath', '-buildvcs=false', '-mod=readonly'];
  args.push('-ldflags', `-s -w ${program.flags}`, '-o', unfinished, program.package);
  // The rest of the machine goes first: a build takes minutes of every core.
  const { code, output } = await runQuietly('nice', ['-n', '15', 'go', ...args], {
    cwd: join(modules, program.module),
    env: { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local' },
  });
  if (code === 0) return renameSync(unfinished, toolPath(name));
  const reason = output.trim().split('\n').slice(-3).join('; ');
  throw new StageError(`${name} could not be built (a Go of at least 1.26 is needed): ${reason}`);
}

/** Joins files of a module, which the checksum database vouches for. */
async function collectDocument(name: DocumentName): Promise<void> {
  const { module, folders, files } = documents[name];
  const { code, output } = await runQuietly('go', ['mod', 'download', '-json', module], {
    cwd: toolsFolder(),
    env: { ...process.env, GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local' },
  });
  const found = (code === 0 ? JSON.parse(output) : {}) as { readonly Dir?: string; readonly Error?: string };
  const source = found.Dir;
  if (source === undefined) {
    throw new StageError(`${module} could not be downloaded: ${found.Error ?? output.trim()}`);
  }
  const texts = folders.flatMap((folder) =>
    readdirSync(join(source, folder))
      .filter((file) => files.test(file))
      .map((file) => readFileSync(join(source, folder, file), 'utf8')),
  );
  if (texts.length === 0) throw new StageError(`${module} does not hold what is looked for.`);
  const unfinished = `${toolPath(name)}.${process.pid}`;
  writeFileSync(unfinished, texts.join('\n---\n'));
  renameSync(unfinished, toolPath(name));
}
