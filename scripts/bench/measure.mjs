import { setTimeout as delay } from 'node:timers/promises';
import { isStopped } from '../lib/children.mjs';
import { LaunchError } from '../lib/project.mjs';
import { cpuMicroseconds, residentMib } from './processes.mjs';
import { EVENTS_PER_STREAM, HELD_STREAMS } from './workload.mjs';

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
};

/** Visits all targets so often that their code is compiled. */
export async function warmUp({ vendor, load, quick }, targets) {
  await vendor.ask(0);
  const share = quick ? QUICK : 1;
  for (const target of targets) {
    await run(load, target, { stream: false, connections: CONNECTIONS, count: share * WARM_UP_REQUESTS });
    if (target.suites.includes('burst')) {
      await run(load, target, { stream: true, connections: STREAMS, count: share * WARM_UP_STREAMS });
    }
  }
}

/** One entry per round: what each suite found out about each target, as `round[suite][target name]`. */
export async function measureRounds(stage, targets) {
  const rounds = [];
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

async function measureRound({ vendor, load, quick }, targets) {
  const round = {};
  for (const [name, suite] of Object.entries(suites)) {
    await vendor.ask(suite.paceMs);
    round[name] = {};
    for (const target of targets.filter((each) => each.suites.includes(name))) {
      const before = cpuMicroseconds(target.pid);
      const { count, p50 } = await run(load, target, { ...suite, ms: suite.ms * (quick ? QUICK : 1) });
      const cpu = (cpuMicroseconds(target.pid) - before) / (count * suite.units);
      round[name][target.name] = { cpu, p50 };
    }
  }
  return round;
}

async function run(load, target, { stream, connections, count, ms }) {
  if (isStopped()) throw new LaunchError('Stopped.');
  return await load.ask({
    kind: 'loop',
    url: target.url,
    headers: { 'content-type': 'application/json', ...target.headers },
    stream,
    connections,
    count,
    ms,
  });
}

/** What 1,000 open streams take of a fresh process, in MiB. */
export async function measureHeld({ vendor, load }, target) {
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
