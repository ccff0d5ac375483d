import { setTimeout as pause } from 'node:timers/promises';
import { untilRowsStored } from '../measure/fault-metrics.ts';
import type { Tally } from '../stage/run-stage.ts';
import type { Asking } from './asking.ts';
import { startAsking } from './asking.ts';
import { coreWaitMs } from './core-wait.ts';
import type { Disturber } from './disturb.ts';
import { startDisturber } from './disturb.ts';
import { failOverOf } from './fail-overs.ts';
import type { Sample } from './judge.ts';
import { latencyOf } from './judge.ts';
import type { SoakLoad } from './load.ts';
import { startSoakLoad } from './load.ts';
import { sampleHeader, sampleLine } from './tables.ts';
import { judge } from './verdict.ts';
import type { SoakWorld } from './world.ts';
import { startSoakWorld } from './world.ts';

export interface SoakOptions {
  readonly minutes: number;
  readonly perSecond: number;
  readonly folder: string;
}

/** Looks per run: each costs a few seconds of quiet. */
const looksPerRun = 20;
const shortestRoundMs = 10_000;
/** What is closing has this long to be gone before a look. */
const settleMs = 2_000;
const storedLimitMs = 60_000;
const minuteMs = 60_000;

interface Running {
  readonly world: SoakWorld;
  readonly load: SoakLoad;
  readonly asking: Asking;
  readonly disturber: Disturber;
  readonly startedAtMs: number;
}

/** Load and what disturbs it, for that long; then a look in a quiet moment. `round` 0 is the first. */
async function runRound(
  { world, load, asking, disturber, startedAtMs }: Running,
  round: number,
  roundMs: number,
): Promise<Sample> {
  const endedBefore = load.ended.length;
  const failedOver = failOverOf(round);
  const isOver = new AbortController();
  const gone = world.gateway.exited.then((code) => {
    throw new Error(`the gateway ended with ${code}`);
  });
  const [beganAtMs, waitedMs] = [performance.now(), coreWaitMs(world.gateway.pid)];
  load.goOn();
  const disturbed = disturber.disturb(failedOver, isOver.signal);
  await Promise.race([pause(roundMs), gone, disturbed.then(() => new Promise(() => {}))]);
  isOver.abort();
  await Promise.race([disturbed, gone]);
  await load.pause();
  const heldUp = (coreWaitMs(world.gateway.pid) - waitedMs) / (performance.now() - beganAtMs);
  await asking.hangUp();
  await untilRowsStored(world.gateway, storedLimitMs);
  world.collectCalls();
  await pause(settleMs);
  const memory = await world.memory();
  const minute = (performance.now() - startedAtMs) / minuteMs;
  const latency = latencyOf(load.ended.slice(endedBefore));
  return { ...memory, minute, requests: load.ended.length, latency, failedOver, heldUp };
}

/**
 * Loads the gateway for that long while tables, keys and stores change under it, looks at its memory in quiet moments,
 * compares the ledgers at the end.
 */
export async function soak({ minutes, perSecond, folder }: SoakOptions): Promise<Tally> {
  const world = await startSoakWorld(folder);
  const keys = world.users.map(({ key }) => key);
  const load = startSoakLoad(world.gateway.url, keys, perSecond);
  try {
    const asking = startAsking(world.gateway.url, load.ended);
    const disturber = await startDisturber(world, asking);
    const roundMs = Math.max(shortestRoundMs, (minutes * minuteMs) / looksPerRun);
    const running = { world, load, asking, disturber, startedAtMs: performance.now() };
    const samples: Sample[] = [];
    console.log(sampleHeader);
    while (performance.now() - running.startedAtMs < minutes * minuteMs) {
      const sample = await runRound(running, samples.length, roundMs);
      samples.push(sample);
      console.log(sampleLine(sample));
    }
    const { ended } = load;
    return await judge({
      world,
      ended,
      skipped: load.skipped(),
      asking,
      done: disturber.done,
      samples,
      minutes,
    });
  } finally {
    load.stop();
    await world.close();
  }
}
