/** From nothing to a tested release: the migration's Job, readiness and its reasons, `helm test`. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, getObjects, helm, kubectl, must, waitLimit } from '../cluster/cluster.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { tables } from '../harness/gateway/tables.ts';
import { eventually } from '../harness/measure/eventually.ts';
import type { TestDatabase } from '../harness/servers/postgres.ts';
import { createDatabase } from '../harness/servers/postgres.ts';
import { tellMeasured } from './support/measured.ts';
import { execIn, logOf, onlyPod, podsOf, untilPod } from './support/pods.ts';
import type { Release } from './support/release.ts';
import { rolledOut, runHelm } from './support/release.ts';
import { forPods, writeSecret } from './support/stores.ts';

const redis = { redis: { existingSecret: '' } };
const gateway = 'app.kubernetes.io/component=gateway';

let database: TestDatabase;
let namespace: string;
let remove: () => Promise<void>;

beforeAll(async () => {
  database = await createDatabase({ migrated: false });
  ({ name: namespace, remove } = await createNamespace());
  await writeSecret(namespace, 'gateway-database', { url: forPods(database.url) });
});

afterAll(async () => {
  await remove?.();
  await database?.drop();
});

async function readiness(release: Release): Promise<{ status: number; body: Record<string, unknown> }> {
  const address = await eventually(async () => {
    const ip = (await podsOf(release))[0]?.status.podIP;
    if (ip === undefined) return undefined;
    const isUp = await httpClient(`http://${ip}:9090`)
      .get('/healthz')
      .then(
        () => true,
        () => false,
      );
    return isUp ? `http://${ip}:9090` : undefined;
  }, 60_000);
  const response = await httpClient(address).get('/readyz');
  return { status: response.status, body: response.json() };
}

test('a pod is alive but not ready, and says why, until the schema is there', async () => {
  const release = { namespace, name: 'waiting', url: '' };
  const values = { ...redis, replicaCount: 1, migrations: { mode: 'off' }, fullnameOverride: 'waiting' };
  await runHelm('install', 'waiting', namespace, values);
  const reason = await eventually(async () => {
    const { status, body } = await readiness(release);
    expect(status).toBe(503);
    return String(body['reason']).startsWith('schema version') ? body['reason'] : undefined;
  }, 30_000);
  expect(reason).toMatch(/^schema version is 0, \d+ is needed: run "model-gateway migrate"$/);
  const [pod] = await podsOf(release);
  expect(pod?.status.containerStatuses?.[0]).toMatchObject({ ready: false, restartCount: 0 });
  await must(helm(['uninstall', 'waiting', '-n', namespace]));
});

test('helm install --wait brings the schema by a Job, then pods that are ready', async () => {
  const begin = performance.now();
  await runHelm('install', 'model-gateway', namespace, redis, ['--wait', '--timeout', waitLimit]);
  tellMeasured(`helm install --wait: ${Math.round(performance.now() - begin)} ms`);
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  const found = await admin.query("SELECT FROM information_schema.tables WHERE table_name = 'request_logs'");
  await admin.end();
  expect(found.rowCount).toBe(1);
  expect(await getObjects(namespace, 'jobs')).toEqual([]);
  const pods = await podsOf({ namespace, name: 'model-gateway', url: '' });
  expect(pods).toHaveLength(2);
  expect(await readiness({ namespace, name: 'model-gateway', url: '' })).toMatchObject({
    status: 200,
    body: { status: 'ready', tables: { last_reload_ok: true } },
  });
});

test.each(['ready', 'chat', 'streaming'])('helm test: the hook %s passes', async (name) => {
  const pod = `model-gateway-test-${name}`;
  const args = ['test', 'model-gateway', '-n', namespace, '--filter', `name=${pod}`, '--timeout', waitLimit];
  const { code, out, err } = await helm(args);
  expect(await logOf(namespace, pod), out + err).toContain(`${name}: ok`);
  expect(code).toBe(0);
});

test('tables that cannot be used keep the pod from becoming ready, and its log names the fault', async () => {
  const configMap = (document: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'own-tables', namespace },
    data: { 'tables.yaml': document },
  });
  const apply = (document: string) =>
    must(kubectl(['apply', '-f', '-'], JSON.stringify(configMap(document))));
  await apply('tiers: {}');
  await runHelm('install', 'unusable', namespace, {
    ...redis,
    ...{ replicaCount: 1, fullnameOverride: 'unusable' },
    tables: { existingConfigMap: 'own-tables' },
  });
  const selector = `${gateway},app.kubernetes.io/instance=unusable`;
  const { metadata, status } = await untilPod(
    namespace,
    selector,
    (pod) => (pod.status.containerStatuses?.[0]?.restartCount ?? 0) > 0,
  );
  expect(status.containerStatuses?.[0]?.ready).toBe(false);
  expect(await logOf(namespace, metadata.name, '--previous')).toContain('tiers.cheap');
  await apply(JSON.stringify(tables()));
  await rolledOut(namespace, 'unusable');
});

/** Starts the gateway once more beside the one that runs, and prints the milliseconds until it is ready. */
const startBeside = `
  const { spawn } = require('node:child_process');
  const env = { ...process.env, PORT: '18080', GW_ADMIN_PORT: '19090', GW_DATA_DIR: '/tmp/beside' };
  const begin = performance.now();
  const child = spawn(process.execPath, ['dist/main.js'], { env, stdio: 'ignore' });
  const isReady = () => fetch('http://127.0.0.1:19090/readyz').then(({ status }) => status === 200, () => false);
  const look = async () => {
    while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, 5));
    console.log(Math.round(performance.now() - begin));
    child.kill('SIGKILL');
  };
  void look();`;

test('in a pod of one core it is soon ready, five times in a row', async () => {
  const resources = { requests: { cpu: '50m', memory: '256Mi' }, limits: { cpu: '1', memory: '1Gi' } };
  const fullnameOverride = 'one-core';
  const own = { ...redis, replicaCount: 1, migrations: { mode: 'off' }, resources, fullnameOverride };
  await runHelm('install', 'one-core', namespace, own, ['--wait', '--timeout', waitLimit]);
  const { metadata } = await onlyPod({ namespace, name: 'one-core', url: '' });
  const times: number[] = [];
  while (times.length < 5) {
    const printed = await execIn(namespace, metadata.name, 'model-gateway', 'node', '-e', startBeside);
    expect(printed).toMatch(/^[0-9]+\n$/);
    times.push(Number(printed));
  }
  tellMeasured(`from start to ready with one core: ${times.join(', ')} ms`);
  await must(helm(['uninstall', 'one-core', '-n', namespace]));
});

test('helm uninstall leaves nothing but what is not its own', async () => {
  await must(helm(['uninstall', 'model-gateway', '-n', namespace]));
  const kinds = 'deployments,services,configmaps,serviceaccounts,networkpolicies,pdb,roles,jobs';
  const left = await getObjects(namespace, kinds, 'app.kubernetes.io/instance=model-gateway');
  expect(left.map(({ metadata }) => metadata.name)).toEqual([]);
});
