import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../lib/children.mjs';
import { LaunchError } from '../lib/project.mjs';

/** The Go modules that pin the programs; their go.sum files are the lock. */
const modules = join(dirname(fileURLToPath(import.meta.url)), 'go');

const kubernetes = 'v1.36.3';
const kubernetesVersion = [
  `-X k8s.io/component-base/version.gitVersion=${kubernetes}`,
  '-X k8s.io/component-base/version.gitMajor=1',
  '-X k8s.io/component-base/version.gitMinor=36',
].join(' ');

const ofKubernetes = (name) => ({
  module: 'kubernetes',
  package: `k8s.io/kubernetes/cmd/${name}`,
  flags: kubernetesVersion,
});
const besideKubernetes = (name, flags = '') => ({ module: 'kubernetes', package: name, flags });

/** Program → its module folder, package and linker flags. The versions stand in the modules' go.mod. */
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
};

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
};

/** What tests on a cluster of their own need to speak to it, and the control plane itself. */
const clusterPrograms = [
  ...['helm', 'kubectl'],
  ...['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'],
];
/** A control plane with a fake node, and the kinds of others. */
export const toolNames = [...clusterPrograms, 'kwok', ...Object.keys(documents)];
/** A control plane with a real node. */
export const nodeToolNames = [
  ...clusterPrograms,
  ...['kubelet', 'kube-proxy', 'coredns', 'pause', 'metrics-server'],
];

/** Where the programs are kept between runs; remove the folder to build them anew. */
export function toolsFolder() {
  return process.env.GW_CLUSTER_TOOLS ?? join(homedir(), '.cache', 'model-gateway', 'cluster-tools');
}

/** The program's path, whether or not it has been built. */
export function toolPath(name) {
  return join(toolsFolder(), name);
}

/**
 * Builds those of the named programs that are missing, from the Go module proxy (about five minutes in all for a cold
 * build cache). Throws LaunchError.
 */
export async function buildTools(names) {
  const missing = names.filter((name) => !existsSync(toolPath(name)));
  if (missing.length === 0) return;
  mkdirSync(toolsFolder(), { recursive: true });
  for (const name of missing) {
    const begin = Date.now();
    console.log(`Building ${name} ...`);
    await (documents[name] === undefined ? buildTool(name) : collectDocument(name));
    console.log(`Built ${name} in ${Math.round((Date.now() - begin) / 1000)} s.`);
  }
}

async function buildTool(name) {
  const program = programs[name];
  const unfinished = join(toolsFolder(), `.${name}.${process.pid}`);
  const args = ['build', '-trimpath', '-buildvcs=false', '-mod=readonly'];
  args.push('-ldflags', `-s -w ${program.flags}`, '-o', unfinished, program.package);
  // The rest of the machine goes first: a build takes minutes of every core.
  const { code, output } = await run('nice', ['-n', '15', 'go', ...args], {
    cwd: join(modules, program.module),
    env: { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (code === 0) return renameSync(unfinished, toolPath(name));
  const reason = output.trim().split('\n').slice(-3).join('; ');
  throw new LaunchError(`${name} could not be built (a Go of at least 1.26 is needed): ${reason}`);
}

/** Joins files of a module, which the checksum database vouches for. */
async function collectDocument(name) {
  const { module, folders, files } = documents[name];
  const { code, output } = await run('go', ['mod', 'download', '-json', module], {
    cwd: toolsFolder(),
    env: { ...process.env, GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const found = code === 0 ? JSON.parse(output) : {};
  if (found.Dir === undefined)
    throw new LaunchError(`${module} could not be downloaded: ${found.Error ?? output.trim()}`);
  const texts = folders.flatMap((folder) =>
    readdirSync(join(found.Dir, folder))
      .filter((file) => files.test(file))
      .map((file) => readFileSync(join(found.Dir, folder, file), 'utf8')),
  );
  if (texts.length === 0) throw new LaunchError(`${module} does not hold what is looked for.`);
  writeFileSync(toolPath(name), texts.join('\n---\n'));
}
