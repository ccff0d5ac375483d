/** Twenty outages of Postgres under load: chats go on, no row is lost, none is double. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { World } from '../harness/gateway/fault-world.ts';
import { makeWorld } from '../harness/gateway/fault-world.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import { becomeKnown } from '../harness/ledgers/fault-load.ts';
import { measured } from '../harness/measure/fault-bounds.ts';
import { untilReadyIs, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import type { CrashablePostgres } from '../harness/servers/fault-postgres.ts';
import { startCrashablePostgres } from '../harness/servers/fault-postgres.ts';
import type { OpenLoop } from './support/open-loop.ts';
import {
  affordableRate,
  fewFailures,
  requestsPerSecond,
  stageSettings,
  startOpenLoop,
  times,
} from './support/open-loop.ts';

/** The ways in which a server goes away and comes back, in turn. */
const ways: readonly ((server: CrashablePostgres) => { away(): Promise<void>; back(): Promise<void> })[] = [
  (server) => ({ away: () => server.kill(), back: () => server.start() }),
  (server) => ({
    away: () => Promise.resolve(server.stopSignal()),
    back: () => Promise.resolve(server.continueSignal()),
  }),
  (server) => ({ away: () => server.quit(), back: () => server.start() }),
];
const outages = times('GW_OUTAGES', 20);
/** Most of a second of load beside each outage, and as much between two. */
const answersBeside = 200;

let postgres: CrashablePostgres;
let world: World;
let gateway: GatewayUnderTest | undefined;
let users: User[];
let load: OpenLoop | undefined;

beforeAll(async () => {
  postgres = await startCrashablePostgres();
  world = await makeWorld(postgres.database);
  gateway = await world.start(stageSettings);
  await untilReadyIs(gateway, 200);
  users = await Promise.all([1, 2, 3, 4, 5].map(() => registerWithKeys(world.url, ['openai'])));
});

afterEach(async () => {
  load?.kill();
  await postgres.restore();
});

afterAll(async () => {
  await gateway?.stop('SIGKILL');
  await world?.close();
  await postgres?.close();
});

describe(`${outages} Postgres outages (SIGKILL, SIGSTOP, immediate shutdown) at ${requestsPerSecond} requests/s`, () => {
  test('every chat of a known user is served, 0 rows missing, 0 doubled', async () => {
    const known = (await Promise.all(users.map((user) => becomeKnown(world.url, user)))).flat();
    const first = await affordableRate(world.url, users);
    load = startOpenLoop(world.url, users, first.perSecond);
    await load.more(answersBeside);
    for (let outage = 0; outage < outages; outage += 1) {
      const { away, back } = (ways[outage % ways.length] as (typeof ways)[number])(postgres);
      await away();
      await load.more(answersBeside);
      await back();
      await load.more(answersBeside);
    }
    const { sent, seconds, skipped } = await load.stop();
    expect(fewFailures(sent)).toEqual([]);
    await untilRowsStored(gateway as GatewayUnderTest, 60_000);
    await expectLedgersAgree({
      databaseUrl: world.database.url,
      vendors: world.vendors,
      sent: [...known, ...first.sent, ...sent],
      users,
    });
    const slowestMs = Math.max(...sent.map((one) => one.tookMs));
    measured(
      `${outages} outages in ${seconds.toFixed(0)} s, ${(sent.length / seconds).toFixed(0)} requests/s sent ` +
        `(${skipped} not sent, too many open); ${sent.length} answers, 0 failed, slowest ${slowestMs.toFixed(0)} ms: ` +
        '0 rows missing, 0 doubled',
    );
  });
});
