/** Pods are replaced while streams are open and requests come: nobody notices. */
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kubectl, must } from '../cluster/cluster.ts';
import { chatBody, chatPath, logRowsOnceThere } from '../harness/gateway/chat.ts';
import type { User } from '../harness/gateway/register.ts';
import { takeApart } from '../harness/gateway/sse-reader.ts';
import { eventually } from '../harness/measure/eventually.ts';
import type { FakeVendor } from '../harness/vendors/fake-vendor.ts';
import { tellMeasured } from './support/measured.ts';
import { podsBy, podsOf } from './support/pods.ts';
import type { Release } from './support/release.ts';
import { rolledOut, runHelm, sharedRelease } from './support/release.ts';
import { endlessStream, heldStreams, openAiUser, startVendorForPods } from './support/users.ts';

const streams = 20;
/** New connections per second beside the streams. */
const probesPerSecond = 20;
const baselineMs = 5_000;
const probeLimitMs = 10_000;

let release: Release;
let vendor: FakeVendor;

beforeAll(async () => {
  vendor = await startVendorForPods();
  release = await sharedRelease();
});

afterAll(async () => {
  await vendor?.close();
});

/** The status of one chat on a connection of its own, or the name of the failure. */
function probe(user: User): Promise<string> {
  const headers = { authorization: `Bearer ${user.key}`, 'content-type': 'application/json' };
  return new Promise((resolve) => {
    const options = { method: 'POST', headers, agent: false, signal: AbortSignal.timeout(probeLimitMs) };
    const sent = request(release.url + chatPath, options, (response) => {
      response.resume();
      response.once('end', () => resolve(String(response.statusCode)));
      response.once('error', (error) => resolve(`cut: ${error.message}`));
    });
    sent.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    sent.end(JSON.stringify(chatBody()));
  });
}

/** Sends probes until `work` is over; how often each ending was seen. */
async function probeWhile(user: User, work: Promise<unknown>): Promise<Record<string, number>> {
  let isOver = false;
  void work
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
    });
  const pending: Promise<string>[] = [];
  while (!isOver) {
    pending.push(probe(user));
    await delay(1000 / probesPerSecond);
  }
  await work;
  const endings: Record<string, number> = {};
  for (const ending of await Promise.all(pending)) endings[ending] = (endings[ending] ?? 0) + 1;
  return endings;
}

const refusedOf = (endings: Record<string, number>): number =>
  Object.entries(endings).reduce((sum, [ending, count]) => sum + (ending === '200' ? 0 : count), 0);

test.each([
  {
    how: 'kubectl rollout restart',
    change: () =>
      must(kubectl(['-n', release.namespace, 'rollout', 'restart', `deployment/${release.name}`])),
  },
  {
    how: 'helm upgrade with another boot setting',
    change: () => runHelm('upgrade', release.name, release.namespace, { logs: { level: 'debug' } }),
  },
])('$how cuts no stream and refuses no request', async ({ how, change }) => {
  const held = endlessStream();
  vendor.clear();
  vendor.when('hold', held.script);
  const prober = await openAiUser(release.url);
  const user = await openAiUser(release.url);
  const baseline = await probeWhile(prober, delay(baselineMs));
  const open = await heldStreams(user, streams);
  const before = await podsOf(release);

  const ends = open.map((reader) => reader.rest());
  const during = await probeWhile(
    prober,
    change()
      .then(() => rolledOut(release.namespace, release.name))
      .then(() => untilDraining(before.map(({ status }) => status.podIP))),
  );
  held.end();
  for (const [index, data] of (await Promise.all(ends)).entries()) {
    const stream = takeApart(data);
    expect(stream).toMatchObject({ done: true, error: null });
    expect(stream.gatewayChunks).toHaveLength(1);
    expect(open[index]?.end).toBe('complete');
  }
  tellMeasured(`${how}: baseline ${JSON.stringify(baseline)}, during ${JSON.stringify(during)}`);
  expect(refusedOf(during)).toBeLessThanOrEqual(refusedOf(baseline));
  const rows = await logRowsOnceThere(user.client, streams);
  expect(rows.map(({ status }) => status)).toEqual(Array.from({ length: streams }, () => 'success'));
  await untilGone(before.map(({ metadata }) => metadata.uid));
});

/** Until the old pods had SIGTERM: their listener is closed, and only the open streams keep them. */
function untilDraining(addresses: readonly string[]): Promise<true> {
  return eventually(async () => {
    const states = await Promise.all(
      addresses.map(async (address) => {
        const response = await fetch(`http://${address}:9090/readyz`).catch(() => null);
        return response === null || ((await response.json()) as { status: string }).status === 'draining';
      }),
    );
    return states.every(Boolean) ? true : undefined;
  }, 60_000);
}

/** Old pods leave as soon as their last stream has ended, long before their grace period is over. */
function untilGone(uids: readonly string[]): Promise<true> {
  return eventually(async () => {
    const left = await podsBy(release.namespace, `app.kubernetes.io/instance=${release.name}`);
    return left.some(({ metadata }) => uids.includes(metadata.uid)) ? undefined : true;
  }, 60_000);
}
