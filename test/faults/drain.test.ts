/** Clients on kept-alive connections that go on while their replica is stopped: none of them notices. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { Agent } from 'undici';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { World } from '../harness/gateway/fault-world.ts';
import { makeWorld } from '../harness/gateway/fault-world.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import type { Sent } from '../harness/ledgers/fault-load.ts';
import { failures, sendChat } from '../harness/ledgers/fault-load.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { measured } from '../harness/measure/fault-bounds.ts';
import { metric, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import type { Balancer } from '../harness/servers/fault-balancer.ts';
import { startBalancer } from '../harness/servers/fault-balancer.ts';
import { heldStream } from '../harness/vendors/vendor-plans.ts';
import { gate } from '../harness/vendors/vendor-reply.ts';

const clients = 100;
/** Of each client, after the answer during which its replica stopped to listen. */
const furtherRequests = 6;
/** A busy machine sheds load, which is not the matter here. */
const settings = { GW_DRAIN_DELAY_SECONDS: '2', GW_DRAIN_SECONDS: '60', GW_MAX_EVENT_LOOP_DELAY_MS: '0' };

let world: World;
let balancer: Balancer;
let replicas: GatewayUnderTest[] = [];
let agents: Agent[] = [];

beforeEach(async () => {
  world = await makeWorld();
  balancer = await startBalancer();
  replicas = await Promise.all([1, 2].map(() => world.startReplica(settings)));
  await Promise.all(replicas.map((replica) => balancer.add(replica)));
  agents = Array.from({ length: clients }, () => new Agent({ connections: 1, pipelining: 1 }));
});

afterEach(async () => {
  await Promise.all(agents.map((agent) => agent.destroy()));
  await Promise.all(replicas.map((replica) => replica.stop('SIGKILL')));
  await balancer.close();
  await world.close();
});

async function accepts({ url }: GatewayUnderTest): Promise<boolean> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

test('a hundred clients in a loop, each in a long answer when its replica stops to listen, see no failure', async () => {
  const users = (await Promise.all(
    [1, 2, 3].map(() => registerWithKeys(balancer.url, ['openai'])),
  )) as User[];
  const opening = gate();
  world.vendors.openai.when('held', heldStream(opening));
  const sendAll = async (agent: Agent, index: number): Promise<Sent[]> => {
    const user = users[index % users.length] as User;
    const sent = [await sendChat(balancer.url, user, { stream: true, say: 'held', agent })];
    for (let next = 0; next < furtherRequests; next += 1)
      sent.push(await sendChat(balancer.url, user, { stream: (index + next) % 2 === 0, agent }));
    return sent;
  };
  const loops = Promise.all(agents.map(sendAll));
  const [old, other] = replicas as [GatewayUnderTest, GatewayUnderTest];
  const streams = async () =>
    (await metric(old, 'gw_inflight_streams')) + (await metric(other, 'gw_inflight_streams'));
  await eventually(async () => (await streams()) === clients || undefined, 30_000);
  expect(await metric(old, 'gw_inflight_streams'), 'both have their share').toBeGreaterThan(clients / 4);
  process.kill(old.pid, 'SIGTERM');
  await eventually(async () => !(await accepts(old)) || undefined, 30_000);
  opening.open();
  const sent = (await loops).flat();
  expect(failures(sent)).toEqual([]);
  expect(sent).toHaveLength(clients * (1 + furtherRequests));
  expect(await old.exited).toBe(0);
  await untilRowsStored(other);
  await expectLedgersAgree({ databaseUrl: world.database.url, vendors: world.vendors, sent, users });
  measured(`${sent.length} requests of ${clients} kept-alive clients through a drain, 0 failed`);
}, 120_000);
