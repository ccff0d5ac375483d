/** An upgrade as operators do it: from the chart before to the one in a registry, whose image the node pulls by digest. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { packageChart } from '../../scripts/release/chart.ts';
import { readFacts } from '../../scripts/release/facts.ts';
import { mustRun } from '../../scripts/release/must-run.ts';
import { chartPush } from '../../scripts/release/publish.ts';
import type { Values } from '../chart/chart-files.ts';
import { getObject, helm, must, waitLimit } from '../cluster/cluster.ts';
import { nodeRegistry } from '../harness/cluster/node-files.ts';
import { logRowsOnceThere } from '../harness/gateway/chat.ts';
import { takeApart } from '../harness/gateway/sse-reader.ts';
import { eventually } from '../harness/measure/eventually.ts';
import type { FakeVendor } from '../harness/vendors/fake-vendor.ts';
import type { Door } from './support/door.ts';
import { openDoor } from './support/door.ts';
import { earlierChart } from './support/earlier-chart.ts';
import { tellMeasured } from './support/measured.ts';
import { podsBy, podsOf } from './support/pods.ts';
import { nodePortUrl, rolledOut, values } from './support/release.ts';
import { endlessStream, heldStreams, openAiUser, startVendorForPods } from './support/users.ts';

const streams = 20;

const registry = process.env['TEST_NODE_REGISTRY'] ?? '';
const image = {
  repository: `${nodeRegistry}/team/model-gateway`,
  digest: process.env['TEST_NODE_DIGEST'] ?? '',
};
const name = 'upgraded';
const namespace = inject('namespace');

let vendor: FakeVendor;
let door: Door;

beforeAll(async () => {
  vendor = await startVendorForPods();
  door = await openDoor(Number(nodeRegistry.split(':')[1]), `http://${registry}`);
});

afterAll(async () => {
  await helm(['uninstall', name, '-n', namespace, '--ignore-not-found', '--wait']);
  await door?.close();
  await vendor?.close();
});

function runChart(verb: 'install' | 'upgrade', chart: readonly string[], own: Values): Promise<string> {
  const args = [verb, name, ...chart, '-n', namespace, '--timeout', waitLimit, '--values', '-'];
  return must(helm(args, JSON.stringify({ ...values, fullnameOverride: name, ...own })));
}

test('from the chart before to the one in a registry cuts no stream', async ({ skip }) => {
  const earlier = earlierChart();
  if (earlier === null) return skip('this checkout has no history, and so no chart before this one');
  await runChart('install', [earlier.path], { image: { ...image, pullPolicy: 'IfNotPresent' } });
  await rolledOut(namespace, name);
  const release = { namespace, name, url: await nodePortUrl(namespace, name) };
  const before = await podsOf(release);

  const folder = mkdtempSync(join(tmpdir(), 'chart-'));
  const facts = readFacts();
  const archive = await packageChart(facts, image, folder);
  await mustRun(chartPush(archive, `${registry}/team`, true));

  const held = endlessStream();
  vendor.when('hold', held.script);
  const user = await openAiUser(release.url);
  const open = await heldStreams(user, streams);
  const ends = open.map((reader) => reader.rest());
  const chart = [`oci://${registry}/team/charts/model-gateway`, '--version', facts.version, '--plain-http'];
  // A boot setting is another one too, so that pods are replaced even where the charts differ in nothing.
  await runChart('upgrade', chart, { image: { pullPolicy: 'IfNotPresent' }, logs: { level: 'debug' } });
  await rolledOut(namespace, name);
  await untilEnding(before.map(({ metadata }) => metadata.uid));
  held.end();
  for (const [index, data] of (await Promise.all(ends)).entries()) {
    expect(takeApart(data)).toMatchObject({ done: true, error: null });
    expect(open[index]?.end).toBe('complete');
  }
  const rows = await logRowsOnceThere(user.client, streams);
  expect(rows.map(({ status }) => status)).toEqual(Array.from({ length: streams }, () => 'success'));
  const deployment = await getObject(namespace, 'deployment', name);
  expect(JSON.stringify(deployment.spec)).toContain(`"${image.repository}@${image.digest}"`);
  expect(deployment.metadata.labels).toMatchObject({ 'helm.sh/chart': `model-gateway-${facts.version}` });
  tellMeasured(`upgrade from the chart of ${earlier.revision.slice(0, 7)} with ${streams} streams: none cut`);
});

/** All pods of before are told to end, while their streams go on. */
function untilEnding(uids: readonly string[]): Promise<true> {
  return eventually(async () => {
    const pods = await podsBy(namespace, `app.kubernetes.io/instance=${name}`);
    const old = pods.filter(({ metadata }) => uids.includes(metadata.uid));
    return old.every(({ metadata }) => metadata.deletionTimestamp !== undefined) ? true : undefined;
  }, 60_000);
}
