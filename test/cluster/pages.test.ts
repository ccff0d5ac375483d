/**
 * The lines of the pages for kubectl and helm, as they are typed, but that nothing is made: both programs say what they
 * would send. What only pods can answer is compared with that, and run by test/node.
 */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { root } from '../chart/chart-files.ts';
import { blocksIn } from '../harness/clients/page-blocks.ts';
import type { KubernetesObject } from '../harness/cluster/kubernetes-object.ts';
import { useFolder } from '../harness/servers/use-started.ts';
import { chart, toolFile } from './cluster.ts';

const folder = useFolder();

/** Everything that is typed and makes nothing by itself is printed as an object of its own. */
const programs = `
typed() { echo '---'; echo "{kind: Typed, metadata: {name: '$*'}}"; }
kubectl() {
  echo '---'
  case " $* " in
    *' create '*) command kubectl "$@" --dry-run=client -o yaml ;;
    *' apply -k '*) command kubectl kustomize "\${@: -1}" ;;
    *) typed kubectl "$@" ;;
  esac
}
helm() { case "$1" in install) echo '---'; shift; command helm template "$@" ;; *) typed helm "$@" ;; esac; }
docker() { case "$1" in run) echo gw_key ;; *) typed docker "$@" ;; esac; }
`;

/** The block of a page that begins so, and what it would make. */
async function madeBy(
  document: string,
  beginning: string,
  ...filled: [string, string][]
): Promise<KubernetesObject[]> {
  const found = blocksIn(document, 'sh').find((text) => text.startsWith(beginning));
  const block = found ?? expect.fail(`${document} has no block that begins with ${beginning}`);
  const lines = filled.reduce((text, [from, to]) => text.replaceAll(from, to), block);
  const PATH = [toolFile('.'), process.env['PATH']].join(delimiter);
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-euo', 'pipefail', '-c', `${programs}\n${lines}\nwait`],
    {
      cwd: root,
      env: { PATH, HOME: folder.path },
      maxBuffer: 2 ** 26,
    },
  );
  return parseAllDocuments(stdout, { version: '1.1' })
    .map((one) => one.toJSON() as KubernetesObject | null)
    .filter((object) => object !== null);
}

const placesOf = (objects: readonly KubernetesObject[]): string[] =>
  objects.map(({ kind, metadata: { namespace, name } }) =>
    [...(namespace === undefined ? [] : [namespace]), kind.toLowerCase(), name].join('/'),
  );
const typedIn = (objects: readonly KubernetesObject[]): string[] =>
  objects.filter(({ kind }) => kind === 'Typed').map(({ metadata }) => metadata.name);

/** Names and entries of the Secrets that pods read, as they stand anywhere in the objects. */
function secretsRead(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { secretKeyRef: reference, secret } = value as {
    readonly secretKeyRef?: { readonly name: string; readonly key: string };
    readonly secret?: {
      readonly secretName?: string;
      readonly name?: string;
      readonly items?: readonly { key: string }[];
    };
  };
  const mounted = secret?.secretName ?? secret?.name;
  return [
    ...(reference === undefined ? [] : [`${reference.name}/${reference.key}`]),
    ...(mounted === undefined ? [] : (secret?.items ?? []).map(({ key }) => `${mounted}/${key}`)),
    ...Object.values(value).flatMap(secretsRead),
  ];
}

function expectSecretsMade(objects: readonly KubernetesObject[]): void {
  const made = objects
    .filter(({ kind }) => kind === 'Secret')
    .flatMap((secret) => {
      const { data, stringData } = secret as unknown as Record<'data' | 'stringData', object | undefined>;
      return Object.keys({ ...data, ...stringData }).map((key) => `${secret.metadata.name}/${key}`);
    });
  const read = secretsRead(objects);
  expect(read.length).toBeGreaterThan(0);
  expect(made).toEqual(expect.arrayContaining(read));
}

test('charts/model-gateway/README.md: the release reads the Secrets that were made before it, and is tested', async () => {
  const objects = await madeBy('charts/model-gateway/README.md', 'kubectl create namespace gateway\n');
  expectSecretsMade(objects);
  expect(placesOf(objects)).toEqual(
    expect.arrayContaining([
      'namespace/gateway',
      'gateway/secret/gateway-database',
      'gateway/deployment/model-gateway',
    ]),
  );
  expect(JSON.stringify(objects)).toContain('"image":"registry.example.com/model-gateway:');
  expect(typedIn(objects)).toEqual(['helm test model-gateway -n gateway']);
});

test('docs/install.md: the chart of a release takes a file of values', async () => {
  const values = join(folder.path, 'values.yaml');
  writeFileSync(
    values,
    stringify({
      database: { existingSecret: 'gateway-database' },
      sealing: { existingSecret: 'gateway-sealing' },
      replicaCount: 7,
    }),
  );
  const objects = await madeBy(
    'docs/install.md',
    'helm install',
    ['oci://registry.example.com/team/charts/model-gateway', chart],
    ['--values values.yaml', `--values ${values}`],
  );
  expect(placesOf(objects)).toContain('gateway/deployment/model-gateway');
  expect(JSON.stringify(objects)).toContain('"replicas":7');
});

test('k8s/README.md: the evaluation has its Secret, and what is waited for and forwarded to', async () => {
  const objects = await madeBy('k8s/README.md', 'docker build');
  expectSecretsMade(objects);
  const places = placesOf(objects);
  for (const place of [
    'secret/gateway-sealing',
    'deployment/model-gateway',
    'service/model-gateway',
    'service/demo-model',
  ])
    expect(places).toContain(`model-gateway-eval/${place}`);
  expect(typedIn(objects)).toEqual([
    expect.stringMatching(/^docker build -t model-gateway:[\d.]+ \.$/),
    'kubectl -n model-gateway-eval rollout status deployment/model-gateway',
    'kubectl -n model-gateway-eval port-forward svc/model-gateway 8080:80',
  ]);
});

test('k8s/README.md: the sidecar has its Secret, and its application a container whose logs are read', async () => {
  const objects = await madeBy('k8s/README.md', 'kubectl apply -k k8s/overlays/sidecar-demo');
  expectSecretsMade(objects);
  expect(placesOf(objects)).toContain('model-gateway-sidecar/deployment/assistant');
  expect(typedIn(objects)).toEqual([
    'kubectl -n model-gateway-sidecar logs deployment/assistant -c assistant -f',
  ]);
  const made = objects.find(
    ({ kind, metadata: { name } }) => kind === 'Secret' && name === 'assistant-gateway',
  );
  const { data = {} } = made as unknown as { readonly data?: Readonly<Record<string, string>> };
  expect(Buffer.from(data['service-key'] ?? '', 'base64').toString()).toBe('gw_key');
});
