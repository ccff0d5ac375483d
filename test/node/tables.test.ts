/** Prices are edited in a cluster: both sources of the tables, from `kubectl patch` to the log row. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { getObject, getObjects, kubectl, must } from '../cluster/cluster.ts';
import type { KubernetesObject } from '../harness/cluster/kubernetes-object.ts';
import { chatOk } from '../harness/gateway/chat.ts';
import type { HttpClient } from '../harness/gateway/http-client.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { tables, testPrices } from '../harness/gateway/tables.ts';
import { eventually } from '../harness/measure/eventually.ts';
import type { FakeVendor } from '../harness/vendors/fake-vendor.ts';
import { tellMeasured } from './support/measured.ts';
import type { Pod } from './support/pods.ts';
import { execIn, identities, onlyPod, podsOf } from './support/pods.ts';
import type { Release } from './support/release.ts';
import { ownRelease } from './support/release.ts';
import { clientAt, openAiUser, startVendorForPods } from './support/users.ts';

/** The kubelet looks every 10 s here, up to half as long again, and its cache may be one round behind. */
const mountLimitMs = 60_000;
/** Seen in a tenth of a second on an idle machine. */
const watchLimitMs = 5_000;
const rowLimitMs = 30_000;

let vendor: FakeVendor;

beforeAll(async () => {
  vendor = await startVendorForPods();
});

afterAll(async () => {
  await vendor?.close();
});

/** The tables of the tests, with this price for an output token of `gw/balanced`. */
const priced = (output: string): string =>
  JSON.stringify(
    tables({
      prices: testPrices.map((price) => (price.model === 'gpt-test' ? { ...price, output } : price)),
    }),
  );

function edit(release: Release, document: string): Promise<string> {
  const patch = JSON.stringify({ data: { 'tables.yaml': document } });
  const args = ['patch', 'configmap', `${release.name}-tables`, '--type=merge', '-p', patch];
  return must(kubectl(['-n', release.namespace, ...args]));
}

interface TablesState {
  readonly generation: number;
  readonly hash: string;
  readonly last_reload_ok: boolean;
}

async function tablesIn(pod: Pod): Promise<TablesState> {
  const response = await httpClient(`http://${pod.status.podIP}:9090`).get('/readyz');
  return response.json<{ tables: TablesState }>().tables;
}

function untilTables(pod: Pod, isSo: (state: TablesState) => boolean, limitMs: number): Promise<TablesState> {
  return eventually(async () => {
    const state = await tablesIn(pod);
    return isSo(state) ? state : undefined;
  }, limitMs);
}

async function chatCost(client: HttpClient): Promise<string> {
  return (await chatOk(client)).gateway.cost_usd;
}

async function versionOfLastRow(user: User): Promise<string> {
  const database = new pg.Client({ connectionString: inject('databaseUrl') });
  await database.connect();
  const { rows } = await database.query<{ tables_version: string }>(
    'SELECT tables_version FROM request_logs WHERE user_id = $1 ORDER BY id DESC LIMIT 1',
    [user.id],
  );
  await database.end();
  return rows[0]?.tables_version ?? '';
}

/** An answer waits 50 ms at most for its row; on a busy machine the row may take the detour over the spool. */
async function untilLastRowHas(user: User, version: string | null | undefined): Promise<void> {
  await eventually(async () => (await versionOfLastRow(user)) === version || undefined, rowLimitMs);
}

test('an edit of the mounted ConfigMap is live in all pods without a restart', async () => {
  // Its own, since Helm refuses to overwrite what was edited by hand.
  const release = await ownRelease('mounted', {});
  const user = await openAiUser(release.url);
  const before = await podsOf(release);
  // 11 tokens at 1.00 and 7 at 5.00 USD per million.
  expect(await chatCost(user.client)).toBe('0.000046');
  const { hash } = await tablesIn(before[0] as Pod);
  await untilLastRowHas(user, hash);

  const begin = performance.now();
  await edit(release, priced('9.00'));
  const states = await Promise.all(
    before.map((pod) => untilTables(pod, (state) => state.hash !== hash, mountLimitMs)),
  );
  tellMeasured(`mounted: live in all pods after ${Math.round(performance.now() - begin)} ms`);

  expect(new Set(states.map((state) => state.hash)).size).toBe(1);
  for (const pod of before)
    expect(await chatCost(clientAt(`http://${pod.status.podIP}:8080`, user))).toBe('0.000074');
  await untilLastRowHas(user, states[0]?.hash);
  expect(identities(await podsOf(release))).toEqual(identities(before));
  await release.remove();
});

describe('tables.source watch', () => {
  let release: Release & { remove(): Promise<void> };
  let pod: Pod;
  let user: User;

  beforeAll(async () => {
    const slice = (await getObject('default', 'endpointslice', 'kubernetes')) as KubernetesObject & {
      endpoints: { addresses: string[] }[];
    };
    const cidrs = slice.endpoints.flatMap(({ addresses }) => addresses.map((address) => `${address}/32`));
    release = await ownRelease('watching', {
      replicaCount: 1,
      tables: { source: 'watch', document: tables() },
      networkPolicy: { kubeApi: { cidrs } },
    });
    pod = await onlyPod(release);
    user = await openAiUser(release.url);
  });

  afterAll(async () => {
    await release?.remove();
  });

  test('the pod holds the token of its own account, and no folder with tables', async () => {
    const folder = '/var/run/secrets/kubernetes.io/serviceaccount';
    const inPod = (...command: string[]) =>
      execIn(release.namespace, pod.metadata.name, 'model-gateway', ...command);
    const [, claims = ''] = (await inPod('cat', `${folder}/token`)).split('.');
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({
      sub: `system:serviceaccount:${release.namespace}:watching`,
    });
    expect(await inPod('ls', '/etc')).not.toContain('model-gateway');
  });

  test('an edit is live at once', async () => {
    const { generation } = await tablesIn(pod);
    await edit(release, priced('9.00'));
    const begin = performance.now();
    const state = await untilTables(pod, (now) => now.generation > generation, watchLimitMs);
    tellMeasured(`watched: live ${Math.round(performance.now() - begin)} ms after kubectl returned`);
    expect(await chatCost(user.client)).toBe('0.000074');
    await untilLastRowHas(user, state.hash);
  });

  test('a bad edit leaves the old tables and an Event that names the fault', async () => {
    const { hash } = await tablesIn(pod);
    await edit(release, 'tiers: {}');
    await untilTables(pod, (state) => !state.last_reload_ok, watchLimitMs);
    expect(await tablesIn(pod)).toMatchObject({ hash, last_reload_ok: false });
    expect(await chatCost(user.client)).toBe('0.000074');
    const event = await eventually(async () => {
      const events = await getObjects(release.namespace, 'events');
      return events.map((each) => JSON.stringify(each)).find((text) => text.includes('watching-tables'));
    }, watchLimitMs);
    expect(event).toContain('tiers.cheap');
    expect(event).toContain('Warning');
  });

  test('a good edit after it is taken, in the same pod', async () => {
    await edit(release, priced('3.00'));
    await untilTables(pod, (state) => state.last_reload_ok, watchLimitMs);
    expect(await chatCost(user.client)).toBe('0.000032');
    expect(identities(await podsOf(release))).toEqual(identities([pod]));
  });
});
