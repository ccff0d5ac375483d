import { setTimeout as delay } from 'node:timers/promises';
import { isStopped } from '../stage/children.ts';
import { StageError } from '../stage/project.ts';
import type { LoadOrder, LoopOrder, LoopResult } from './load.ts';
import type { Running, Worker } from './processes.ts';
import { childrenMicroseconds, cpuMicroseconds, residentMib } from './processes.ts';
import type { Suite, SuitePlan } from './suites.ts';
import { atOnce, CONNECTIONS, STREAMS, suites } from './suites.ts';
import type { Pace } from './vendor.ts';
import { HELD_STREAMS } from './workload.ts';

/** V8 needs it: a gateway's first thousands of requests cost nearly twice as much as the later ones. */
export const WARM_UP_REQUESTS = 60_000;
const WARM_UP_STREAMS = 500;
/** Each of a slice: where every event comes by itself, other code is compiled than where they come together. */
const WARM_UP_PACED_TURNS = 6;
const WARM_UP_TURNS = 5;
/** Then a figure stands when a slice of it takes no less than so much of the one before, or after so many slices. */
const STANDING = 0.98;
const MOST_WARM_UP_SLICES = 20;
/** Of all amounts, when it is only to be seen that everything runs. */
const QUICK = 0.1;
/**
 * What idled while others had their turns begins each of its own with this, which is not counted: connections that it or
 * the vendor closed meanwhile are opened again (over TLS that is dear), and what it needs is in the CPU's caches.
 */
export const LEAD_IN_MS = 100;
/** The base's own figure before and after a slice: where the two are further apart, something else ran. */
const STEADY = 1.25;

const HOLD_PACE_MS = 1_000;
const HOLD_MS = 2_000;
/** Before its memory is looked at a process has served something, so that code and pools are there. */
const HOLD_WARM_UP_REQUESTS = 2_000;

/** Who takes part in every measurement. */
export interface Stage {
  readonly vendors: readonly Worker<Pace>[];
  readonly load: Worker<LoadOrder>;
  /** Of the Postgres server. */
  readonly postgresPid: number;
  readonly quick: boolean;
}

/** Whom requests are sent to, and with which headers beside those of every request. */
export interface Addressee {
  /** Requests are shared out among them; mostly one. */
  readonly processes: readonly Running[];
  readonly headers: Readonly<Record<string, string>>;
}

export interface Target extends Addressee {
  readonly name: string;
  /** What visits it. */
  readonly suites: readonly Suite[];
  /** It is measured by nothing but what others are measured by it. */
  readonly isFloor?: true;
}

interface Slice {
  /** CPU time in µs of one request, or of one event of a stream. */
  readonly cpu: number;
  /** CPU time of Postgres in µs per request. */
  readonly postgres: number;
  /** Median time of an answer, in the suite `first` of its first token, in ms. */
  readonly p50: number;
}

export interface Figures extends Slice {
  /** Its CPU time by the mean of its base's just before and just after. */
  readonly ratio: number;
  /** Its `p50` less the mean of its base's just before and just after. */
  readonly addedMs: number;
}

/** What each suite found out about each target in one turn, by its name; a slice that was disturbed is left out. */
export type Turn = Readonly<Record<string, Figures>>;
export type Turns = Readonly<Record<Suite, readonly Turn[]>>;

async function setPace({ vendors }: Stage, pace: Pace): Promise<void> {
  for (const vendor of vendors) await vendor.ask(pace);
}

/**
 * Visits a target, and the base that it is measured by, so often that their code is compiled. In turns: what was warm
 * first, and idled until the other was, cost 0.05 to 0.1 more ever after.
 */
export async function warmUp(stage: Stage, base: Target, target: Target): Promise<void> {
  await setPace(stage, atOnce);
  const visitsJson = target.suites.includes('json');
  if (visitsJson) {
    const json = { stream: false, connections: CONNECTIONS, count: WARM_UP_REQUESTS };
    await warmUpWith(stage, [base, target], json, 'json');
  }
  if (target.suites.includes('burst')) {
    // Who is sent streams only is compiled by them.
    const count = WARM_UP_STREAMS * (visitsJson ? 1 : 2);
    await warmUpWith(stage, [base, target], { stream: true, connections: STREAMS, count }, 'burst');
  }
  if (target.suites.includes('paced') && !stage.quick) {
    await setPace(stage, suites.paced.pace);
    for (let turn = 0; turn < WARM_UP_PACED_TURNS; turn += 1) {
      for (const one of [base, target]) await measureSlice(stage, one, 'paced');
    }
    await visitUntilTheyStand(stage, [base, target], 'paced');
  }
}

/** Each process compiles for itself: `count` is for one. */
async function warmUpWith(
  stage: Stage,
  targets: readonly Target[],
  loop: Pick<LoopOrder, 'stream' | 'connections'> & { readonly count: number },
  suite: Suite,
): Promise<void> {
  const count = (loop.count * (stage.quick ? QUICK : 1)) / WARM_UP_TURNS;
  for (let turn = 0; turn < WARM_UP_TURNS; turn += 1) {
    for (const target of targets) {
      await run(stage, target, { ...loop, count: count * target.processes.length });
    }
  }
  if (!stage.quick) await visitUntilTheyStand(stage, targets, suite);
}

async function visitUntilTheyStand(stage: Stage, targets: readonly Target[], suite: Suite): Promise<void> {
  let before = targets.map(() => Number.POSITIVE_INFINITY);
  for (let slice = 0; slice < MOST_WARM_UP_SLICES; slice += 1) {
    const now: number[] = [];
    for (const target of targets) now.push((await measureSlice(stage, target, suite)).cpu);
    if (now.every((cpu, index) => cpu > (before[index] as number) * STANDING)) return;
    before = now;
  }
}

/**
 * A target and its base, which is a floor or another gateway, take turns, slice by slice: what disturbs the machine
 * disturbs neighbours alike. `parts`: of as many it is one.
 */
export async function measure(stage: Stage, base: Target, target: Target, parts = 1): Promise<Turns> {
  const found: Record<Suite, Turn[]> = { json: [], burst: [], paced: [], latency: [], first: [] };
  for (const suite of target.suites) {
    const { pace, slices } = suites[suite];
    await setPace(stage, pace);
    let before = await measureSlice(stage, base, suite);
    for (let slice = 0; slice < (stage.quick ? 1 : Math.ceil(slices / parts)); slice += 1) {
      const own = await measureSlice(stage, target, suite);
      const after = await measureSlice(stage, base, suite);
      found[suite].push(isSteady(suite, before, after) ? turnOf(target, own, base, [before, after]) : {});
      before = after;
    }
  }
  return found;
}

function turnOf(target: Target, own: Slice, base: Target, [before, after]: readonly [Slice, Slice]): Turn {
  const ratio = (2 * own.cpu) / (before.cpu + after.cpu);
  const addedMs = own.p50 - (before.p50 + after.p50) / 2;
  const ofBase = base.isFloor ? { [base.name]: { ...after, ratio: 1, addedMs: 0 } } : {};
  return { [target.name]: { ...own, ratio, addedMs }, ...ofBase };
}

const everyOf = (of: (suite: Suite) => Turn[]): Turns => ({
  json: of('json'),
  burst: of('burst'),
  paced: of('paced'),
  latency: of('latency'),
  first: of('first'),
});

/** What several starts of one target found out, as if it had been one. */
export const inARow = (all: readonly Turns[]): Turns =>
  everyOf((suite) => all.flatMap((turns) => turns[suite]));

/** What was found out one after the other, side by side. */
export function together(all: readonly Turns[]): Turns {
  return everyOf((suite) => {
    const length = Math.max(0, ...all.map((turns) => turns[suite].length));
    return Array.from({ length }, (_, at) =>
      Object.assign({}, ...all.map((turns) => turns[suite][at] ?? {})),
    );
  });
}

/** In what is compared there. */
function isSteady(suite: Suite, before: Slice, after: Slice): boolean {
  const figure = suite === 'latency' || suite === 'first' ? 'p50' : 'cpu';
  const [one, other] = [before[figure], after[figure]];
  return Math.max(one, other) / Math.min(one, other) < STEADY;
}

const urlsOf = (processes: readonly Running[]): string[] => processes.map(({ url }) => url);

const sumOf = (processes: readonly Running[], of: (one: Running) => number): number =>
  processes.reduce((sum, one) => sum + of(one), 0);

async function measureSlice(stage: Stage, target: Target, suite: Suite): Promise<Slice> {
  const { stream, connections, ms, units, pauseMs = 0 }: SuitePlan = suites[suite];
  await leadIn(stage, target, suite);
  const used = (): number => sumOf(target.processes, ({ pid }) => cpuMicroseconds(pid));
  const [before, postgresBefore] = [used(), childrenMicroseconds(stage.postgresPid)];
  const { count, p50 } = await run(stage, target, {
    stream,
    connections,
    ms: ms * (stage.quick ? QUICK : 1),
    pauseMs,
    until: suite === 'first' ? 'first token' : 'end',
  });
  const cpu = (used() - before) / (count * units);
  return { cpu, p50, postgres: (childrenMicroseconds(stage.postgresPid) - postgresBefore) / count };
}

/** At full speed, also where the events that follow are paced. */
async function leadIn(stage: Stage, target: Target, suite: Suite): Promise<void> {
  const { stream, connections, pace } = suites[suite];
  if (pace !== atOnce) await setPace(stage, atOnce);
  await run(stage, target, { stream, connections, ms: LEAD_IN_MS * (stage.quick ? QUICK : 1) });
  if (pace !== atOnce) await setPace(stage, pace);
}

async function run(
  { load }: Stage,
  { processes, headers }: Addressee,
  loop: Omit<LoopOrder, 'kind' | 'urls' | 'headers' | 'until'> & Partial<Pick<LoopOrder, 'until'>>,
): Promise<LoopResult> {
  if (isStopped()) throw new StageError('Stopped.');
  return (await load.ask({
    kind: 'loop',
    until: 'end',
    urls: urlsOf(processes),
    headers,
    ...loop,
  })) as LoopResult;
}

/** What 1,000 open streams take of a fresh process, in MiB. */
export async function measureHeld(stage: Stage, target: Addressee): Promise<number> {
  await setPace(stage, atOnce);
  await run(stage, target, { stream: false, connections: CONNECTIONS, count: HOLD_WARM_UP_REQUESTS });
  await setPace(stage, { ms: HOLD_PACE_MS });
  const { processes, headers } = target;
  const resident = (): number => sumOf(processes, ({ pid }) => residentMib(pid));
  const before = resident();
  await stage.load.ask({ kind: 'hold', urls: urlsOf(processes), headers, stream: true, count: HELD_STREAMS });
  await delay(HOLD_MS);
  const after = resident();
  await stage.load.ask({ kind: 'release' });
  return after - before;
}
