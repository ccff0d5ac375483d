import { setTimeout as pause } from 'node:timers/promises';
import { untilRowsStored } from '../measure/fault-metrics.ts';
import { recordFault } from '../scorecard/scorecard.ts';
import { sql } from '../servers/fault-postgres.ts';
import type { Tally } from '../stage/run-stage.ts';
import type { Sample } from './judge.ts';
import { compareRows, drifts, kindTable, sampleHeader, sampleLine, shortestJudgedMinutes } from './judge.ts';
import type { SoakLoad } from './load.ts';
import { startSoakLoad } from './load.ts';
import type { SoakWorld } from './world.ts';
import { forgetLedgers, startSoakWorld } from './world.ts';

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

async function look(world: SoakWorld, load: SoakLoad, startedAtMs: number): Promise<Sample> {
  await load.pause();
  await untilRowsStored(world.gateway, storedLimitMs);
  forgetLedgers(world.gateway);
  await pause(settleMs);
  const memory = await world.memory();
  const minute = (performance.now() - startedAtMs) / minuteMs;
  return { ...memory, minute, requests: load.ended.length };
}

/** Loads the gateway for that long, looks at its memory in quiet moments, compares the log at the end. */
export async function soak({ minutes, perSecond, folder }: SoakOptions): Promise<Tally> {
  const world = await startSoakWorld(folder);
  const keys = world.users.map(({ key }) => key);
  const load = startSoakLoad(world.gateway.url, keys, perSecond);
  const roundMs = Math.max(shortestRoundMs, (minutes * minuteMs) / looksPerRun);
  const startedAtMs = performance.now();
  const samples: Sample[] = [];
  try {
    console.log(sampleHeader);
    while (performance.now() - startedAtMs < minutes * minuteMs) {
      load.goOn();
      await Promise.race([pause(roundMs), world.gateway.exited]);
      const sample = await look(world, load, startedAtMs);
      samples.push(sample);
      console.log(sampleLine(sample));
    }
    return await judge(world, load, samples, minutes);
  } finally {
    load.stop();
    await world.gateway.stop();
  }
}

async function judge(
  world: SoakWorld,
  load: SoakLoad,
  samples: readonly Sample[],
  minutes: number,
): Promise<Tally> {
  const rows = await sql<{ request_id: string }>(
    world.gateway.database.url,
    'SELECT request_id FROM request_logs',
  );
  const { missing, doubled } = compareRows(
    load.ended,
    rows.map(({ request_id: id }) => id),
  );
  console.log(`\n${kindTable(load.ended)}\n`);
  console.log(`${load.skipped()} requests were due and not sent, since too many were open.`);
  console.log(`${rows.length} rows, ${missing.length} missing, ${doubled.length} doubled.`);
  for (const id of [...missing, ...doubled].slice(0, 5)) console.log(`  ${id}`);
  const areRowsWhole = missing.length + doubled.length === 0;
  recordFault({
    fault: `${minutes} minutes of mixed load with vendor faults, clients that leave and slow readers`,
    required: 'every whole answer has one row',
    figure: `${load.ended.length} requests, ${missing.length} rows missing, ${doubled.length} doubled`,
    passed: areRowsWhole,
  });
  const isJudged = minutes >= shortestJudgedMinutes;
  let failed = areRowsWhole ? 0 : 1;
  for (const { what, fromMiB, toMiB, share, isTooMuch } of drifts(samples)) {
    const figure = `${fromMiB.toFixed(1)} to ${toMiB.toFixed(1)} MiB, ${(share * 100).toFixed(1)} %`;
    console.log(`${what} after the warm-up: ${figure}${isJudged ? '' : ' (a run this short is not judged)'}`);
    if (!isJudged) continue;
    if (isTooMuch) failed += 1;
    recordFault({
      fault: `${minutes} minutes of mixed load: ${what} of the process`,
      required: 'grows by 5 % at most after the first quarter',
      figure,
      passed: !isTooMuch,
    });
  }
  const checks = isJudged ? 3 : 1;
  return { passed: checks - failed, failed, skipped: 0 };
}
