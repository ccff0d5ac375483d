import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments, stringify } from 'yaml';
import { run } from '../lib/children.mjs';
import { inProject, LaunchError } from '../lib/project.mjs';
import { buildTools, toolPath } from './tools.mjs';

const chart = 'charts/model-gateway';
const cases = 'test/chart/cases';
const rendered = 'test/chart/rendered';
/** Values files of the chart that lie under a case. */
const profiles = { ha: [`${chart}/values-ha.yaml`] };
/** Longer texts in ConfigMaps are files that are tested where they are kept. */
const LONGEST_TEXT = 300;
/** Kubernetes reads `off` as false, so it has to be quoted. */
const kubernetesYaml = '1.1';
const style = { version: kubernetesYaml, aliasDuplicateObjects: false, lineWidth: 0 };
/** Labels that only Helm needs. */
const helmLabels = ['helm.sh/chart', 'app.kubernetes.io/managed-by'];

/** The objects of the chart under these values files, tests and hooks included. Throws LaunchError with Helm's words. */
export async function renderChart(valuesFiles, more = []) {
  const args = ['template', 'model-gateway', inProject(chart), '--namespace', 'model-gateway'];
  for (const path of valuesFiles) args.push('--values', inProject(path));
  args.push('--kube-version', '1.36.3', '--api-versions', 'monitoring.coreos.com/v1', ...more);
  const { code, output } = await run(toolPath('helm'), args, { stdio: ['ignore', 'pipe', 'pipe'] });
  if (code !== 0) throw new LaunchError(output.trim());
  return parseAllDocuments(output, { version: kubernetesYaml })
    .map((document) => document.toJSON())
    .filter((object) => object !== null);
}

/** What the committed renderings and k8s/base should be: `[{ path, text }]`. Builds Helm when it is not there. */
export async function renderedFiles() {
  await buildTools(['helm']);
  const files = [];
  for (const name of caseNames()) {
    const objects = await renderChart(valuesOf(name));
    files.push({ path: `${rendered}/${name}.yaml`, text: toText(objects.filter(isOurs).map(shorten)) });
    if (name === 'defaults') {
      const plain = objects
        .filter((object) => !isHook(object) && !isTest(object) && !isTables(object))
        .map(withoutHelm);
      files.push({ path: 'k8s/base/model-gateway.yaml', text: toText(plain) });
    }
  }
  files.push({ path: `${rendered}/sources.sha256`, text: `${sourcesDigest()}\n` });
  return files;
}

export function caseNames() {
  return readdirSync(inProject(cases))
    .map((file) => basename(file, '.yaml'))
    .sort();
}

export function valuesOf(name) {
  return [...(profiles[name] ?? []), `${cases}/${name}.yaml`];
}

/** Changes with every file that the renderings come from, so that a test without Helm sees stale ones. */
export function sourcesDigest() {
  const hash = createHash('sha256');
  const files = [`${chart}/Chart.yaml`, `${chart}/values.yaml`, `${chart}/values-ha.yaml`];
  for (const folder of [`${chart}/templates`, cases]) {
    const names = readdirSync(inProject(folder), { recursive: true }).sort();
    files.push(...names.filter((name) => /\.\w+$/.test(name)).map((name) => join(folder, name)));
  }
  for (const path of files)
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(inProject(path)))
      .update('\0');
  return hash.digest('hex');
}

const isHook = (object) => object.metadata?.annotations?.['helm.sh/hook'] !== undefined;
const isTest = (object) => object.metadata?.labels?.['app.kubernetes.io/component'] === 'test';
const isTables = (object) => object.kind === 'ConfigMap' && object.metadata.name.endsWith('-tables');
/** Dashboards come and go with their files. */
const isOurs = (object) => object.metadata?.labels?.grafana_dashboard === undefined;

function shorten(object) {
  if (object.kind === 'PrometheusRule') return { ...object, spec: { groups: '(rules)' } };
  if (object.kind !== 'ConfigMap' || object.data === undefined) return object;
  const short = (text) => (text.length > LONGEST_TEXT ? '(text)' : text);
  const data = Object.entries(object.data).map(([key, text]) => [key, short(text)]);
  return { ...object, data: Object.fromEntries(data) };
}

/** For `kubectl apply -k`, which names the namespace itself. */
function withoutHelm(object) {
  const { namespace: _namespace, ...metadata } = object.metadata;
  const labels = Object.entries(metadata.labels).filter(([name]) => !helmLabels.includes(name));
  return { ...object, metadata: { ...metadata, labels: Object.fromEntries(labels) } };
}

function toText(objects) {
  const key = ({ kind, metadata }) => `${kind}/${metadata.name}`;
  const sorted = [...objects].sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return sorted.map((object) => stringify(object, style)).join('---\n');
}

/** `npm run render:chart`: writes the renderings that the tests compare with. With `--check` it tells which are old. */
async function main() {
  const stale = (await renderedFiles()).filter(({ path, text }) => textOf(path) !== text);
  for (const { path, text } of stale) {
    if (process.argv.includes('--check')) console.error(`${path} is out of date: npm run render:chart`);
    else writeRendering(path, text);
  }
  return process.argv.includes('--check') && stale.length > 0 ? 1 : 0;
}

function textOf(path) {
  return existsSync(inProject(path)) ? readFileSync(inProject(path), 'utf8') : null;
}

function writeRendering(path, text) {
  mkdirSync(inProject(path, '..'), { recursive: true });
  writeFileSync(inProject(path), text);
  console.log(`wrote ${path}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main();
