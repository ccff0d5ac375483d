import { setTimeout as delay } from 'node:timers/promises';
import { isStopped } from '../stage/children.ts';
import { StageError } from '../stage/project.ts';
import type { LoadOrder, LoopOrder, LoopResult } from './load.ts';
import type { Running, Worker } from './processes.ts';
import { cpuMicroseconds, residentMib } from './processes.ts';
import { EVENTS_PER_STREAM, HELD_STREAMS } from './workload.ts';

/** V8 needs it: a gateway's first thousands of requests cost nearly twice as much as the later ones. */
const WARM_UP_REQUESTS = 20_000;
const WARM_UP_STREAMS = 500;
const ROUNDS = 5;
/** On a slow machine there are fewer rounds; the bound on the whole benchmark is eight minutes. */
const LEAST_ROUNDS = 3;
const ROUNDS_LIMIT_MS = 200_000;
/** Of all amounts, when it is only to be seen that everything runs. */
const QUICK = 0.1;

const CONNECTIONS = 32;
const STREAMS = 50;
const PACE_MS = 10;
const HOLD_PACE_MS = 1_000;
const HOLD_MS = 2_000;
/** Before its memory is looked at a process has served something, so that code and pools are there. */
const HOLD_WARM_UP_REQUESTS = 2_000;

/** What one round does with each target, and for how long. */
const suites = {
  json: { stream: false, connections: CONNECTIONS, ms: 1_500, paceMs: 0, units: 1 },
  burst: { stream: true, connections: STREAMS, ms: 1_000, paceMs: 0, units: EVENTS_PER_STREAM },
  // Each connection has two streams: the second begins in time.
  paced: { stream: true, connections: STREAMS, ms: 1_300, paceMs: PACE_MS, units: EVENTS_PER_STREAM },
  latency: { stream: false, connections: 1, ms: 500, paceMs: 0, units: 1 },
} as const;

export type Suite = keyof typeof suites;

/** Who takes part in every measurement. */
export interface Stage {
  /** Told the milliseconds between the events of its streams. */
  readonly vendor: Worker<number>;
  readonly load: Worker<LoadOrder>;
  readonly quick: boolean;
}

/** Whom requests are sent to, and with which headers beside those of every request. */
export interface Addressee extends Running {
  readonly headers: Readonly<Record<string, string>>;
}

export interface Target extends Addressee {
  readonly name: string;
  /** What visits it. */
  readonly suites: readonly Suite[];
}

export interface Figures {
  /** CPU time in µs of one request, or of one event of a stream. */
  readonly cpu: number;
  /** Median time of an answer, in ms. */
  readonly p50: number;
}

/** What each suite found out about each target, by its name. */
export type Round = Readonly<Record<Suite, Readonly<Record<string, Figures>>>>;

/** Visits all targets so often that their code is compiled. */
export async function warmUp({ vendor, load, quick }: Stage, targets: readonly Target[]): Promise<void> {
  await vendor.ask(0);
  const share = quick ? QUICK : 1;
  for (const target of targets) {
    await run(load, target, { stream: false, connections: CONNECTIONS, count: share * WARM_UP_REQUESTS });
    if (target.suites.includes('burst')) {
      await run(load, target, { stream: true, connections: STREAMS, count: share * WARM_UP_STREAMS });
    }
  }
}

export async function measureRounds(stage: Stage, targets: readonly Target[]): Promise<Round[]> {
  const rounds: Round[] = [];
  const begin = Date.now();
  const most = stage.quick ? 1 : ROUNDS;
  while (rounds.length < most) {
    if (rounds.length >= LEAST_ROUNDS && Date.now() - begin > ROUNDS_LIMIT_MS) break;
    // Another order every time, so that nobody always has the same neighbour.
    const shift = rounds.length % targets.length;
    rounds.push(await measureRound(stage, [...targets.slice(shift), ...targets.slice(0, shift)]));
    console.log(`Round ${rounds.length} of ${most} is done.`);
  }
  return rounds;
}

async function measureRound({ vendor, load, quick }: Stage, targets: readonly Target[]): Promise<Round> {
  const round: Record<Suite, Record<string, Figures>> = { json: {}, burst: {}, paced: {}, latency: {} };
  for (const name of Object.keys(suites) as Suite[]) {
    const { stream, connections, ms, paceMs, units } = suites[name];
    await vendor.ask(paceMs);
    for (const target of targets.filter((each) => each.suites.includes(name))) {
      const before = cpuMicroseconds(target.pid);
      const { count, p50 } = await run(load, target, { stream, connections, ms: ms * (quick ? QUICK : 1) });
      const cpu = (cpuMicroseconds(target.pid) - before) / (count * units);
      round[name][target.name] = { cpu, p50 };
    }
  }
  return round;
}

async function run(
  load: Worker<LoadOrder>,
  { url, headers }: Addressee,
  loop: Omit<LoopOrder, 'kind' | 'url' | 'headers'>,
): Promise<LoopResult> {
  if (isStopped()) throw new StageError('Stopped.');
  return (await load.ask({ kind: 'loop', url, headers, ...loop })) as LoopResult;
}

/** What 1,000 open streams take of a fresh process, in MiB. */
export async function measureHeld({ vendor, load }: Stage, target: Addressee): Promise<number> {
  await vendor.ask(0);
  await run(load, target, { stream: false, connections: CONNECTIONS, count: HOLD_WARM_UP_REQUESTS });
  await vendor.ask(HOLD_PACE_MS);
  const before = residentMib(target.pid);
  const { url, headers } = target;
  await load.ask({ kind: 'hold', url, headers, stream: true, count: HELD_STREAMS });
  await delay(HOLD_MS);
  const after = residentMib(target.pid);
  await load.ask({ kind: 'release' });
  return after - before;
}
