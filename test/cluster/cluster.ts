import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Values } from '../chart/chart-files.ts';
import { chartFolder, root } from '../chart/chart-files.ts';
import type { KubernetesObject } from '../harness/cluster/kubernetes-object.ts';

/**
 * Longest run of one program, against hanging only and below the limit of a test (vitest.config.ts); what waits for pods
 * is told to give up before, and says what it waited for.
 */
const programMs = 200_000;
export const waitLimit = '180s';

/** The API is our own, so that its fake node runs every pod at once; in another cluster images cannot be pulled. */
export const isOwnCluster = process.env['TEST_CLUSTER_IS_OWN'] === '1';

export const toolFile = (name: string): string => join(process.env['TEST_CLUSTER_TOOLS'] ?? '', name);
export const chart = join(root, chartFolder);

export interface Result {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function program(name: string, args: readonly string[], input?: string): Promise<Result> {
  const child = spawn(toolFile(name), args, {
    cwd: root,
    timeout: programMs,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (bytes: Buffer) => {
    out += bytes.toString();
  });
  child.stderr.on('data', (bytes: Buffer) => {
    err += bytes.toString();
  });
  // One that ended without reading all of it says why by its code and its words.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input ?? '');
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, out, err }));
  });
}

export const kubectl = (args: readonly string[], input?: string): Promise<Result> =>
  program('kubectl', args, input);
export const helm = (args: readonly string[], input?: string): Promise<Result> =>
  program('helm', args, input);

/** The output of a run that has to succeed. */
export async function must(run: Promise<Result>): Promise<string> {
  const { code, out, err } = await run;
  if (code !== 0) throw new Error(`exit code ${code}: ${err || out}`);
  return out;
}

/** One object, as the API holds it. */
export async function getObject(namespace: string, kind: string, name: string): Promise<KubernetesObject> {
  return JSON.parse(
    await must(kubectl(['-n', namespace, 'get', kind, name, '-o', 'json'])),
  ) as KubernetesObject;
}

export async function getObjects(
  namespace: string,
  kind: string,
  selector = '',
): Promise<KubernetesObject[]> {
  const text = await must(kubectl(['-n', namespace, 'get', kind, '-l', selector, '-o', 'json']));
  return (JSON.parse(text) as { items: KubernetesObject[] }).items;
}

/** Asks for the eviction of one pod, which is what a drain of its node does. */
export function evict(namespace: string, name: string): Promise<Result> {
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
  return kubectl(['create', '--raw', path, '-f', '-'], JSON.stringify(eviction));
}

export const toDocuments = (objects: readonly unknown[]): string =>
  objects.map((object) => JSON.stringify(object)).join('\n---\n');

/** The chart rendered offline. `values` goes in after the files. */
export async function render(
  valuesFiles: readonly string[],
  values: Values = {},
  more: readonly string[] = [],
): Promise<KubernetesObject[]> {
  const text = await must(tryRender(valuesFiles, values, more));
  return parseAllDocuments(text, { version: '1.1' })
    .map((document) => document.toJSON() as KubernetesObject | null)
    .filter((object) => object !== null);
}

export function tryRender(
  valuesFiles: readonly string[],
  values: Values = {},
  more: readonly string[] = [],
): Promise<Result> {
  const files = valuesFiles.flatMap((path) => ['--values', path]);
  const args = ['template', 'model-gateway', chart, '-n', 'model-gateway', ...files, '--values', '-'];
  const versions = ['--kube-version', '1.36.3', '--api-versions', 'monitoring.coreos.com/v1'];
  return helm([...args, ...versions, ...more], JSON.stringify(values));
}

const accountFolders: string[] = [];

/** A kubeconfig file for one service account, with nobody else's credentials in it; gone with the namespace. */
export async function accountConfig(namespace: string, account: string): Promise<string> {
  const token = (await must(kubectl(['-n', namespace, 'create', 'token', account]))).trim();
  const view = await must(kubectl(['config', 'view', '--raw', '--minify', '--flatten', '-o', 'json']));
  const config = JSON.parse(view) as { contexts: { context: { user: string } }[] };
  const users = config.contexts.map(({ context }) => ({ name: context.user, user: { token } }));
  const folder = mkdtempSync(join(tmpdir(), 'account-'));
  accountFolders.push(folder);
  const path = join(folder, 'kubeconfig');
  writeFileSync(path, JSON.stringify({ ...config, users }), { mode: 0o600 });
  return path;
}

export interface Namespace {
  readonly name: string;
  remove(): Promise<void>;
}

/** A fresh namespace that enforces the restricted Pod Security Standard, with the Secrets that the chart asks for. */
export async function createNamespace(): Promise<Namespace> {
  const name = `model-gateway-test-${randomBytes(4).toString('hex')}`;
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const secret = (secretName: string, stringData: Values) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: secretName, namespace: name },
    stringData,
  });
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } },
    secret('gateway-database', { url: 'postgres://gateway@127.0.0.1:1/gateway' }),
    secret('gateway-sealing', { 'sealing-keys': `v1:${randomBytes(32).toString('base64')}` }),
  ];
  await must(kubectl(['apply', '--server-side', '-f', '-'], toDocuments(objects)));
  await must(kubectl(['-n', name, 'wait', '--for=create', 'serviceaccount/default', '--timeout=30s']));
  return {
    name,
    remove: async () => {
      await kubectl(['delete', 'namespace', name, '--wait=false']);
      for (const folder of accountFolders.splice(0)) rmSync(folder, { recursive: true });
    },
  };
}
