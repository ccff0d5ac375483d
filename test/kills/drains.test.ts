/** Twenty replicas are stopped by SIGTERM and replaced under load: nothing fails, no row is lost, none is double. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { World } from '../harness/gateway/fault-world.ts';
import { endBy, makeWorld } from '../harness/gateway/fault-world.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { expectLedgersAgree } from '../harness/ledgers/fault-ledgers.ts';
import { lateLookUps } from '../harness/ledgers/fault-load.ts';
import { measured } from '../harness/measure/fault-bounds.ts';
import { untilRowsStored } from '../harness/measure/fault-metrics.ts';
import type { Balancer } from '../harness/servers/fault-balancer.ts';
import { startBalancer } from '../harness/servers/fault-balancer.ts';
import type { OpenLoop } from './support/open-loop.ts';
import {
  affordableRate,
  fewFailures,
  requestsPerSecond,
  stageSettings,
  startOpenLoop,
  times,
} from './support/open-loop.ts';

const drains = times('GW_DRAINS', 20);
const answersBetween = 100;
/**
 * For how much of the load a fresh process may not know its accounts yet, since Postgres did not answer in time: as long
 * as it lets one query take. That is a starved machine; more is a process that says too early that it is ready.
 */
const lateSeconds = 1;
/** The delay of the chart: clients let go of idle connections before it is over, as they are told. */
const settings = { GW_DRAIN_DELAY_SECONDS: '5', GW_DRAIN_SECONDS: '30' };

let world: World;
let balancer: Balancer;
let replicas: GatewayUnderTest[] = [];
let users: User[];
let load: OpenLoop | undefined;

async function addReplica(): Promise<void> {
  const fresh = await world.startReplica({ ...stageSettings, ...settings });
  replicas.push(fresh);
  await balancer.add(fresh);
}

beforeAll(async () => {
  world = await makeWorld();
  balancer = await startBalancer();
  await addReplica();
  users = await Promise.all([1, 2, 3, 4, 5].map(() => registerWithKeys(balancer.url, ['openai'])));
});

afterAll(async () => {
  load?.kill();
  await Promise.all(replicas.map((replica) => replica.stop('SIGKILL')));
  await balancer?.close();
  await world?.close();
});

describe(`${drains} drains by SIGTERM, each after its successor is ready, at ${requestsPerSecond} requests/s`, () => {
  test('none is cut or refused, each process exits with 0, 0 rows missing, 0 doubled', async () => {
    const first = await affordableRate(balancer.url, users);
    load = startOpenLoop(balancer.url, users, first.perSecond);
    for (let drain = 0; drain < drains; drain += 1) {
      await load.more(answersBetween);
      await addReplica();
      const [old] = replicas as [GatewayUnderTest];
      expect(await endBy('SIGTERM', old)).toBe(0);
      balancer.remove(old);
      replicas = replicas.filter((replica) => replica !== old);
    }
    await load.more(answersBetween);
    const { sent, seconds, skipped } = await load.stop();
    // A fresh process on a starved machine may be late with its first accounts: that is no drain's doing, and is told.
    const late = lateLookUps(sent);
    expect(late.length).toBeLessThanOrEqual(drains * first.perSecond * lateSeconds);
    expect(fewFailures(sent.filter((one) => !late.includes(one)))).toEqual([]);
    await Promise.all(replicas.map((replica) => untilRowsStored(replica, 60_000)));
    await expectLedgersAgree({
      databaseUrl: world.database.url,
      vendors: world.vendors,
      sent: [...first.sent, ...sent],
      users,
    });
    measured(
      `${drains} drains in ${seconds.toFixed(0)} s, ${(sent.length / seconds).toFixed(0)} requests/s sent ` +
        `(${skipped} not sent, too many open); ${sent.length} answers, 0 cut or refused by a drain, ` +
        `${late.length} by a fresh process that had no account yet: 0 rows missing, 0 doubled`,
    );
  });
});
