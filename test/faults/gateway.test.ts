/** The gateway is killed, stopped and replaced: no row of an answer is lost, no stream is broken needlessly. */
import { randomUUID } from 'node:crypto';
import { request as call } from 'undici';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chatBody, chatPath } from '../harness/gateway/chat.ts';
import type { World } from '../harness/gateway/fault-world.ts';
import { endBy, makeWorld } from '../harness/gateway/fault-world.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { takeApart } from '../harness/gateway/sse-reader.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import type { Load, Sent } from '../harness/ledgers/fault-load.ts';
import {
  becomeKnown,
  failures,
  lateLookUps,
  loadAgent,
  sendChat,
  startLoad,
} from '../harness/ledgers/fault-load.ts';
import { patient } from '../harness/measure/crowding.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectWithin, measured, timed } from '../harness/measure/fault-bounds.ts';
import { metric, probe, untilReadyIs, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { startBalancer } from '../harness/servers/fault-balancer.ts';
import type { CrashablePostgres } from '../harness/servers/fault-postgres.ts';
import { sql, startCrashablePostgres } from '../harness/servers/fault-postgres.ts';
import { closeAfterTest } from '../harness/servers/use-started.ts';
import { openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import { hang, heldStream, streamOf } from '../harness/vendors/vendor-plans.ts';
import { gate } from '../harness/vendors/vendor-reply.ts';

const oneToken = streamOf([sse(openAiChunk('gpt-test', { content: 'only' }))], 'hang');

async function users(world: World, count = 3): Promise<User[]> {
  return Promise.all(Array.from({ length: count }, () => registerWithKeys(world.url, ['openai'])));
}

async function statusOf(world: World, sent: Sent): Promise<string | undefined> {
  const [row] = await sql<{ status: string }>(
    world.database.url,
    'SELECT status FROM request_logs WHERE request_id = $1',
    [sent.id],
  );
  return row?.status;
}

async function untilStreaming(gateway: GatewayUnderTest, count: number): Promise<void> {
  await eventually(async () => (await metric(gateway, 'gw_inflight_streams')) === count || undefined);
}

let world: World;
let gateway: GatewayUnderTest | undefined;
let load: Load | undefined;

beforeEach(async () => {
  world = await makeWorld();
});

afterEach(async () => {
  await load?.stop();
  await gateway?.stop('SIGKILL');
  await world.close();
});

describe('SIGKILL under load', () => {
  test('costs no whole answer its row', async () => {
    gateway = await world.start();
    await untilReadyIs(gateway, 200);
    const known = await users(world);
    const sent: Sent[] = [];
    for (let kill = 0; kill < 3; kill += 1) {
      load = startLoad({ url: world.url, users: known, workers: 12 });
      await load.more(60);
      expect(await endBy('SIGKILL', gateway)).toBeNull();
      sent.push(...(await load.stop()));
      gateway = await world.start();
      await untilReadyIs(gateway, 200);
    }
    expect(sent.filter((one) => one.whole && one.status === 200).length).toBeGreaterThan(150);
    await untilRowsStored(gateway);
    const { url: databaseUrl } = world.database;
    await expectLedgersAgree({
      databaseUrl,
      vendors: world.vendors,
      sent,
      users: known,
      everyCallHasItsRow: false,
    });
  });

  describe('while Postgres is away', () => {
    let postgres: CrashablePostgres;
    let apart: World;

    beforeAll(async () => {
      postgres = await startCrashablePostgres();
      apart = await makeWorld(postgres.database);
    });

    afterAll(async () => {
      await apart.close();
      await postgres.close();
    });

    test('costs none either, whoever takes over the spool', async () => {
      gateway = await apart.start();
      await untilReadyIs(gateway, 200);
      const known = await users(apart);
      const sent: Sent[] = [];
      for (const user of known) sent.push(...(await becomeKnown(apart.url, user)));
      await postgres.kill();
      load = startLoad({ url: apart.url, users: known });
      await load.more(60);
      await endBy('SIGKILL', gateway);
      sent.push(...(await load.stop()));
      await postgres.start();
      // Two at once on the spool that the dead one left.
      const [again, other] = await Promise.all([apart.start(), apart.startReplica()]);
      gateway = again;
      await Promise.all([untilRowsStored(again), untilRowsStored(other)]);
      await eventually(async () => {
        const [row] = await sql<{ count: number }>(
          postgres.database.url,
          'SELECT count(*)::int AS count FROM request_logs',
        );
        return (row?.count ?? 0) >= sent.filter((one) => one.whole && one.status === 200).length || undefined;
      });
      const { url: databaseUrl } = apart.database;
      await expectLedgersAgree({
        databaseUrl,
        vendors: apart.vendors,
        sent,
        users: known,
        everyCallHasItsRow: false,
      });
      await other.stop();
    });
  });
});

describe('SIGTERM', () => {
  test('under load lets streams finish, loses no row and exits with 0', async () => {
    gateway = await world.start({ GW_DRAIN_SECONDS: '30' });
    await untilReadyIs(gateway, 200);
    const known = await users(world);
    const opening = gate();
    world.vendors.openai.when('held', heldStream(opening));
    const held = Array.from({ length: 30 }, (_, index) =>
      sendChat(world.url, known[index % known.length] as User, {
        stream: true,
        say: 'held',
        agent: loadAgent(),
      }),
    );
    await untilStreaming(gateway, held.length);
    load = startLoad({ url: world.url, users: known });
    await load.more(40);
    process.kill(gateway.pid, 'SIGTERM');
    expectWithin('readiness off', await timed(() => untilReadyIs(gateway as GatewayUnderTest, 503)), 200);
    await eventually(() => Promise.resolve(load?.sent.at(-1)?.status === null || undefined));
    const sent = [...(await load.stop())];
    for (const one of sent.filter((each) => each.status === 503))
      expect(one.text).toContain('"code":"draining"');
    expect(await probe(gateway, '/healthz'), 'it is alive while it drains').toBe(200);
    opening.open();
    const streams = await Promise.all(held);
    expect(failures(streams)).toEqual([]);
    expect(await gateway.exited).toBe(0);
    sent.push(...streams);
    gateway = await world.start();
    await untilRowsStored(gateway);
    await expectLedgersAgree({ databaseUrl: world.database.url, vendors: world.vendors, sent, users: known });
  });

  test('ends what is still running at the drain limit with an error and a row', async () => {
    gateway = await world.start({ GW_DRAIN_SECONDS: '1' });
    await untilReadyIs(gateway, 200);
    const [user] = (await users(world, 1)) as [User];
    world.vendors.openai.when('endless', oneToken);
    world.vendors.openai.when('mute', hang);
    const streaming = Array.from({ length: 10 }, () =>
      sendChat(world.url, user, { stream: true, say: 'endless' }),
    );
    const waiting = Array.from({ length: 10 }, () => sendChat(world.url, user, { say: 'mute' }));
    await untilStreaming(gateway, streaming.length);
    await world.vendors.openai.received(19);
    const ending = endBy('SIGTERM', gateway);
    expectWithin('exit after the drain limit', (await timed(() => ending)) - 1_000, 1_000);
    expect(await ending).toBe(0);
    for (const one of await Promise.all(streaming)) {
      const events = one.text.split('\n\n').filter((event) => event !== '');
      const stream = takeApart(events.map((event) => event.replace(/^data: /, '')));
      expect(stream.content).toBe('only');
      expect(stream.done).toBe(false);
      expect(stream.error).toMatchObject({ type: 'service_unavailable_error', code: 'draining' });
      expect(await statusOf(world, one)).toBe('incomplete');
    }
    for (const one of await Promise.all(waiting)) {
      expect(one.status).toBe(503);
      expect(one.text).toContain('"code":"draining"');
      expect(await statusOf(world, one)).toBe('error');
    }
    // Nobody can scrape what is counted in the last moments: a line tells it.
    expect(gateway.output()).toMatch(/"active":20,"msg":"the drain was too short/);
  });

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'followed by %s hurries and still exits with 0',
    async (second) => {
      gateway = await world.start({ GW_DRAIN_SECONDS: '60', GW_DRAIN_DELAY_SECONDS: '60' });
      await untilReadyIs(gateway, 200);
      const [user] = (await users(world, 1)) as [User];
      world.vendors.openai.always(oneToken);
      const stream = sendChat(world.url, user, { stream: true });
      await untilStreaming(gateway, 1);
      process.kill(gateway.pid, 'SIGTERM');
      await untilReadyIs(gateway, 503);
      process.kill(gateway.pid, second);
      const { exited } = gateway;
      expectWithin('exit after the second signal', await timed(() => exited), 1_000);
      expect(await exited).toBe(0);
      expect((await stream).text).toContain('"code":"draining"');
      expect(await statusOf(world, await stream)).toBe('incomplete');
    },
  );

  test('keeps accepting during the drain delay, not afterwards', async () => {
    // Long enough for some requests that are sent one by one.
    const delaySeconds = Math.ceil(patient(1));
    gateway = await world.start({ GW_DRAIN_DELAY_SECONDS: String(delaySeconds) });
    await untilReadyIs(gateway, 200);
    const [user] = (await users(world, 1)) as [User];
    const signalledAtMs = performance.now();
    process.kill(gateway.pid, 'SIGTERM');
    await untilReadyIs(gateway, 503);
    let served = 0;
    let last: Sent;
    do {
      last = await sendChat(world.url, user, { agent: loadAgent() });
      if (last.status === 200) served += 1;
    } while (last.status === 200);
    expect(served, 'new connections are served').toBeGreaterThan(3);
    expect(performance.now() - signalledAtMs, 'until the delay is over').toBeGreaterThanOrEqual(
      delaySeconds * 900,
    );
    expect([null, 503]).toContain(last.status);
    expect(await gateway.exited).toBe(0);
  });

  test('asks clients to leave while it still serves them', async () => {
    gateway = await world.start({ GW_DRAIN_DELAY_SECONDS: '60' });
    await untilReadyIs(gateway, 200);
    const [user] = (await users(world, 1)) as [User];
    process.kill(gateway.pid, 'SIGTERM');
    await untilReadyIs(gateway, 503);
    for (const stream of [false, true]) {
      const response = await call(world.url + chatPath, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${user.key}`,
          'content-type': 'application/json',
          'x-request-id': randomUUID(),
        },
        body: JSON.stringify(chatBody({ stream })),
      });
      await response.body.dump();
      expect(response.statusCode).toBe(200);
      expect(response.headers['connection']).toBe('close');
    }
  });
});

describe('a rolling restart of three replicas', () => {
  test('breaks no request and no stream', async () => {
    const env = { GW_DRAIN_DELAY_SECONDS: '0.5', GW_DRAIN_SECONDS: '30' };
    let replicas = await Promise.all([1, 2, 3].map(() => world.startReplica(env)));
    const balancer = closeAfterTest(await startBalancer());
    await Promise.all(replicas.map((replica) => balancer.add(replica)));
    const known = await Promise.all([1, 2, 3].map(() => registerWithKeys(balancer.url, ['openai'])));
    const agent = closeAfterTest(loadAgent());
    load = startLoad({ url: balancer.url, users: known, workers: 12, agent });
    await load.more(60);
    for (const old of replicas) {
      const fresh = await world.startReplica(env);
      await balancer.add(fresh);
      expect(await endBy('SIGTERM', old)).toBe(0);
      balancer.remove(old);
      replicas = replicas.map((replica) => (replica === old ? fresh : replica));
      await load.more(60);
    }
    const sent = await load.stop();
    const late = lateLookUps(sent);
    expect(failures(sent.filter((one) => !late.includes(one)))).toEqual([]);
    measured(
      `${sent.length} requests through a rolling restart, 0 broken, ${late.length} refused by a fresh process`,
    );
    await Promise.all(replicas.map((replica) => untilRowsStored(replica)));
    await expectLedgersAgree({
      databaseUrl: world.database.url,
      vendors: world.vendors,
      sent,
      users: known,
    });
  });
});
