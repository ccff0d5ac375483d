/** Fifty gateways are killed under load: no answer that a client has whole is without its row, and no row is double. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { World } from '../harness/gateway/fault-world.ts';
import { endBy, makeWorld } from '../harness/gateway/fault-world.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import { measured } from '../harness/measure/fault-bounds.ts';
import { untilReadyIs, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import type { OpenLoop } from './support/open-loop.ts';
import {
  affordableRate,
  requestsPerSecond,
  served,
  stageSettings,
  startOpenLoop,
  times,
} from './support/open-loop.ts';

const kills = times('GW_KILLS', 50);
/** Answers between a start and the kill: from the first steps of a process to a warm one. */
const answersBefore = (kill: number) => 10 + ((kill * 37) % 120);

let world: World;
let gateway: GatewayUnderTest | undefined;
let users: User[];
let load: OpenLoop | undefined;

beforeAll(async () => {
  world = await makeWorld();
  gateway = await world.start(stageSettings);
  await untilReadyIs(gateway, 200);
  users = await Promise.all([1, 2, 3, 4, 5].map(() => registerWithKeys(world.url, ['openai'])));
});

afterAll(async () => {
  load?.kill();
  await gateway?.stop('SIGKILL');
  await world?.close();
});

describe(`${kills} SIGKILLs of the gateway at ${requestsPerSecond} requests/s`, () => {
  test('0 rows missing, 0 doubled', async () => {
    let upMs = 0;
    const first = await affordableRate(world.url, users);
    load = startOpenLoop(world.url, users, first.perSecond);
    for (let kill = 0; kill < kills; kill += 1) {
      const upSinceMs = performance.now();
      await load.more(answersBefore(kill));
      expect(await endBy('SIGKILL', gateway as GatewayUnderTest)).toBeNull();
      upMs += performance.now() - upSinceMs;
      gateway = await world.start(stageSettings);
    }
    await load.more(100);
    const { sent, seconds, skipped } = await load.stop();
    await untilRowsStored(gateway as GatewayUnderTest, 60_000);
    const whole = served(sent).length;
    await expectLedgersAgree({
      databaseUrl: world.database.url,
      vendors: world.vendors,
      sent: [...first.sent, ...sent],
      users,
      everyCallHasItsRow: false,
    });
    const offered = `${((sent.length + skipped) / seconds).toFixed(0)} requests/s offered`;
    const held = `${skipped} not sent, too many open`;
    measured(
      `${kills} kills in ${seconds.toFixed(0)} s, ${offered} (${held}), up ${(upMs / 1000).toFixed(0)} s; ` +
        `${whole} answers served whole: 0 rows missing, 0 doubled`,
    );
    expect(whole).toBeGreaterThan(kills * 30);
  });
});
