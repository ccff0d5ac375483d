import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import type { MadeFile } from '../generated/made-files.ts';
import { runQuietly } from '../stage/children.ts';
import { inProject, StageError } from '../stage/project.ts';
import type { KubernetesObject } from './kubernetes-object.ts';
import { buildTools, toolPath } from './tools.ts';

const chart = 'charts/model-gateway';
const cases = 'test/chart/cases';
const rendered = 'test/chart/rendered';
/** Values files of the chart that lie under a case. */
const profiles: Readonly<Record<string, readonly string[]>> = { ha: [`${chart}/values-ha.yaml`] };
/** Longer texts in ConfigMaps are files that are tested where they are kept. */
const LONGEST_TEXT = 300;
/** Kubernetes reads `off` as false, so it has to be quoted. */
const kubernetesYaml = '1.1';
const style = { version: kubernetesYaml, aliasDuplicateObjects: false, lineWidth: 0 } as const;
/** Labels that only Helm needs. */
const helmLabels = ['helm.sh/chart', 'app.kubernetes.io/managed-by'];

/** The objects of the chart under these values files, tests and hooks included. Throws StageError with Helm's words. */
async function renderChart(valuesFiles: readonly string[]): Promise<KubernetesObject[]> {
  const args = ['template', 'model-gateway', inProject(chart), '--namespace', 'model-gateway'];
  for (const path of valuesFiles) args.push('--values', inProject(path));
  args.push('--kube-version', '1.36.3', '--api-versions', 'monitoring.coreos.com/v1');
  const { code, output } = await runQuietly(toolPath('helm'), args);
  if (code !== 0) throw new StageError(output.trim());
  return parseAllDocuments(output, { version: kubernetesYaml })
    .map((document) => document.toJSON() as KubernetesObject | null)
    .filter((object) => object !== null);
}

/** What the committed renderings and k8s/base should be. Builds Helm when it is not there. Throws StageError. */
export async function renderedFiles(): Promise<MadeFile[]> {
  await buildTools(['helm']);
  const files: MadeFile[] = [];
  for (const name of caseNames()) {
    const objects = await renderChart(valuesOf(name));
    files.push({ path: `${rendered}/${name}.yaml`, text: toText(objects.filter(isOurs).map(shorten)) });
    if (name === 'defaults') {
      const plain = objects
        .filter((each) => !isHook(each) && !isTest(each) && !isTables(each))
        .map(withoutHelm);
      files.push({ path: 'k8s/base/model-gateway.yaml', text: toText(plain) });
    }
  }
  files.push({ path: `${rendered}/sources.sha256`, text: `${sourcesDigest()}\n` });
  return files;
}

function caseNames(): string[] {
  return readdirSync(inProject(cases))
    .map((file) => basename(file, '.yaml'))
    .sort();
}

function valuesOf(name: string): string[] {
  return [...(profiles[name] ?? []), `${cases}/${name}.yaml`];
}

/** Changes with every file that the renderings come from, so that a test without Helm sees stale ones. */
export function sourcesDigest(): string {
  const hash = createHash('sha256');
  const files = [`${chart}/Chart.yaml`, `${chart}/values.yaml`, `${chart}/values-ha.yaml`];
  for (const folder of [`${chart}/templates`, cases]) {
    const names = readdirSync(inProject(folder), { recursive: true, encoding: 'utf8' }).sort();
    files.push(...names.filter((name) => /\.\w+$/.test(name)).map((name) => join(folder, name)));
  }
  for (const path of files) {
    hash.update(`${path}\0`);
    hash.update(readFileSync(inProject(path)));
    hash.update('\0');
  }
  return hash.digest('hex');
}

const isHook = ({ metadata }: KubernetesObject) => metadata.annotations?.['helm.sh/hook'] !== undefined;
const isTest = ({ metadata }: KubernetesObject) =>
  metadata.labels?.['app.kubernetes.io/component'] === 'test';
const isTables = ({ kind, metadata }: KubernetesObject) =>
  kind === 'ConfigMap' && metadata.name.endsWith('-tables');
/** Dashboards come and go with their files. */
const isOurs = ({ metadata }: KubernetesObject) => metadata.labels?.['grafana_dashboard'] === undefined;

function shorten(object: KubernetesObject): KubernetesObject {
  if (object.kind === 'PrometheusRule') return { ...object, spec: { groups: '(rules)' } };
  if (object.kind !== 'ConfigMap' || object.data === undefined) return object;
  const short = (text: string) => (text.length > LONGEST_TEXT ? '(text)' : text);
  const data = Object.entries(object.data).map(([key, text]) => [key, short(text)]);
  return { ...object, data: Object.fromEntries(data) };
}

/** For `kubectl apply -k`, which names the namespace itself. */
function withoutHelm(object: KubernetesObject): KubernetesObject {
  const { namespace: _namespace, ...metadata } = object.metadata;
  const labels = Object.entries(metadata.labels ?? {}).filter(([name]) => !helmLabels.includes(name));
  return { ...object, metadata: { ...metadata, labels: Object.fromEntries(labels) } };
}

function toText(objects: readonly KubernetesObject[]): string {
  const key = ({ kind, metadata }: KubernetesObject) => `${kind}/${metadata.name}`;
  const sorted = [...objects].sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return sorted.map((object) => stringify(object, style)).join('---\n');
}
