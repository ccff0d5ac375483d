import type { AttackCase, Family } from './attack-case.ts';
import type { BystanderFacts } from './judge/bystander.ts';
import { bystanderLimitMs, startBystander } from './judge/bystander.ts';
import { caseProblem } from './judge/case-verdict.ts';
import type { Baseline } from './judge/quiet.ts';
import { untilQuiet } from './judge/quiet.ts';
import type { Seen } from './wire/client.ts';
import { attackOnce } from './wire/client.ts';
import { copyId, requestBytes } from './wire/request-bytes.ts';
import type { World } from './world.ts';
import { requestSeconds } from './world.ts';

/** A client that waits for longer than this was forgotten: many times the limit of a request, for a busy machine. */
const caseLimitMs = requestSeconds * 1000 + 26_000;
/** Beyond this delay of the event loop the gateway sheds load (`overload.maxEventLoopDelayMs` of the chart). */
const sheddingMs = 200;
/** The event loop is never held for longer, in CPU time of a machine that does nothing else. */
const longestTurnMs = 200;

export interface BatchResult {
  /** What one seed alone did wrong. */
  readonly bySeed: ReadonlyMap<number, string>;
  /** What was wrong with the process afterwards: any of the seeds may have done it. */
  readonly process: readonly string[];
  /** More memory than before that nothing of ours holds: a leak outside the heap, or what an allocator keeps. */
  readonly growth: string | null;
  readonly figures: {
    readonly longestTurnCpuMs: number;
    readonly peakBytes: number;
    readonly rssBytes: number;
    readonly bystanderMs: number;
    readonly controlMs: number;
    readonly slowness: number;
  };
}

interface Run {
  readonly seed: number;
  readonly attack: AttackCase;
  readonly id: string;
  readonly seen: Seen;
}

async function runSeeds(
  world: World,
  family: Family,
  seeds: readonly number[],
  name: string,
): Promise<Run[]> {
  const url = new URL(world.gateway().url);
  const target = { host: url.hostname, port: Number(url.port) };
  const runs: Run[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < seeds.length; index = next++) {
      const seed = seeds[index] as number;
      const attack = family.make(seed);
      const id = `atk-${name}-${seed}`;
      const key = await world.keyFor(attack.sending.auth, index);
      if (attack.vendor !== null) {
        for (let copy = 0; copy < attack.sending.copies; copy += 1)
          world.vendor.play(copyId(id, copy), attack.vendor);
      }
      const seen = await attackOnce(target, requestBytes(attack, id, key), attack, caseLimitMs);
      runs.push({ seed, attack, id, seen });
    }
  };
  await Promise.all(Array.from({ length: Math.min(family.width, seeds.length) }, lane));
  return runs;
}

async function rowsOf(world: World, name: string): Promise<Map<string, string[]>> {
  const rows = await world.query<{ request_id: string; status: string }>(
    'SELECT request_id, status FROM request_logs WHERE request_id LIKE $1',
    [`atk-${name}-%`],
  );
  const statuses = new Map<string, string[]>();
  for (const { request_id: id, status } of rows) statuses.set(id, [...(statuses.get(id) ?? []), status]);
  return statuses;
}

/** Runs seeds of a family beside a bystander, waits until all is quiet, and judges. No other batch has the `name`. */
export async function runBatch(
  world: World,
  family: Family,
  seeds: readonly number[],
  baseline: Baseline,
  name: string,
): Promise<BatchResult> {
  world.witness().peakBytes();
  await world.witness().ask();
  await world.yardstick.slowness();
  world.postgres.delay(family.postgresDelayMs);
  const bystander = startBystander(world, name);
  const runs = await runSeeds(world, family, seeds, name);
  const bystanding = await bystander.stop();
  const slowness = await world.yardstick.slowness();
  const { slowestMs: bystanderMs, controlMs } = bystanding;
  const calls = Map.groupBy(world.vendor.calls, (id) => id);
  const counted = new Map([...calls].map(([id, all]) => [id, all.length]));
  const quiet = await untilQuiet(world, baseline).catch((error: unknown) => String(error));
  world.postgres.delay(0);
  const peakBytes = world.witness().peakBytes();
  if (typeof quiet === 'string') {
    const said = world
      .gateway()
      .logs()
      .filter(({ level, raw }) => level === 'fatal' || level === 'error' || raw);
    const died = `${quiet}; ${JSON.stringify(said.slice(-3)).slice(-1500)}`;
    const figures = { longestTurnCpuMs: 0, peakBytes, rssBytes: 0, bystanderMs, controlMs, slowness };
    return { bySeed: new Map(), process: [died], growth: null, figures };
  }
  const rows = await rowsOf(world, name);
  const { longestTurnCpuMs, longestTurnWallMs, rssBytes } = quiet.report;
  // What the loop waited without computing: the machine did other work.
  const lostMs = Math.max(0, longestTurnWallMs - longestTurnCpuMs);
  const starved = lostMs > sheddingMs;
  const bySeed = new Map<number, string>();
  for (const { seed, attack, id, seen } of runs) {
    const problem = caseProblem({
      id,
      attack,
      seen,
      rows: rows.get(id) ?? [],
      calls: counted.get(id) ?? 0,
      starved,
    });
    if (problem !== null) bySeed.set(seed, problem);
  }
  const figures = { longestTurnCpuMs, peakBytes, rssBytes, bystanderMs, controlMs, slowness };
  return {
    bySeed,
    growth: quiet.growth,
    figures,
    process: [
      ...quiet.problems,
      ...(longestTurnCpuMs > longestTurnMs * slowness
        ? [
            `the event loop was held for ${longestTurnCpuMs.toFixed(0)} ms of CPU (machine ${slowness.toFixed(1)})`,
          ]
        : []),
      ...(peakBytes > world.limitBytes
        ? [`${(peakBytes / 1024 / 1024).toFixed(0)} MiB resident, over the limit`]
        : []),
      ...bystanderProblems(bystanding, starved),
    ],
  };
}

function bystanderProblems(facts: BystanderFacts, starved: boolean): string[] {
  const { problems, slowestMs, controlMs, shed } = facts;
  return [
    ...problems.slice(0, 3),
    ...(shed > 0 && !starved ? [`a bystander was shed ${shed} times`] : []),
    ...(slowestMs > bystanderLimitMs(controlMs)
      ? [`a bystander waited ${slowestMs.toFixed(0)} ms, and ${controlMs.toFixed(0)} ms where nobody attacks`]
      : []),
  ];
}
