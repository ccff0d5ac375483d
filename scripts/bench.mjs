import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { page } from './bench/page.mjs';
import { dutyTable, telemetryTable } from './bench/tables.mjs';
import { BARE_HTTP, CACHED, DIRECT, FLOOR, GATEWAY, telemetryGateways, UNWATCHED } from './bench/targets.mjs';
import { build } from './lib/build.mjs';
import { inProject, LaunchError } from './lib/project.mjs';
import { oneSkip, runStage, withPostgres } from './lib/stage.mjs';

/**
 * `npm run bench [-- YYYY-MM-DD | --quick]`: what the built gateway costs, against bare forwarders on the same stack, and
 * what its telemetry costs. Prints tables of ratios and writes docs/performance.md. Less than eight minutes; on loopback
 * only.
 */

const everySuite = ['json', 'burst', 'paced', 'latency'];
const streamSuites = ['json', 'burst', 'paced'];
/** How long we look at what else runs. */
const LOOK_MS = 1_000;

await runStage('scripts/bench.mjs', async (node) => {
  if (process.platform !== 'linux') {
    console.log('Skipped: CPU times are read from /proc, which only Linux has.');
    return oneSkip;
  }
  const quick = process.argv[2] === '--quick';
  const date = (quick ? undefined : process.argv[2]) ?? new Date().toISOString().slice(0, 10);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) throw new LaunchError(`"${date}" is not a date like 2026-01-31.`);
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');

  const before = await busyCores();
  const found = await withPostgres((folder, databaseUrl) => benchmark(folder, databaseUrl, quick));
  const foreignCores = Math.max(before, await busyCores());
  const { rounds, held } = found;
  console.log(`\nCPU against ${FLOOR}, median (least–most):\n\n${dutyTable(rounds, held)}\n`);
  console.log(`CPU against "${UNWATCHED}":\n\n${telemetryTable(rounds)}\n`);
  const file = inProject('docs', 'performance.md');
  if (!quick) writeFileSync(file, page({ ...found, date, foreignCores }, readFileSync(file, 'utf8')));
  return { passed: 1, failed: 0, skipped: 0 };
});

/** How many cores are in use while we do nothing. */
async function busyCores() {
  const busy = () =>
    cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
  const before = busy();
  await delay(LOOK_MS);
  return (busy() - before) / LOOK_MS;
}

/** Starts everything but Postgres, measures, and stops it, whatever happens. */
async function benchmark(folder, databaseUrl, quick) {
  const running = [];
  const started = async (starting) => {
    const one = await starting;
    running.push(one);
    return one;
  };
  try {
    return await measureAll(started, databaseUrl, folder, quick);
  } finally {
    await Promise.all(running.map((one) => one.stop()));
  }
}

async function measureAll(started, databaseUrl, folder, quick) {
  const { gatewayEnvironment, registerUser, startGateway, startWorker } = await import(
    './bench/processes.mjs'
  );
  const { measureHeld, measureRounds, warmUp } = await import('./bench/measure.mjs');
  const vendor = await started(startWorker('vendor.mjs'));
  const load = await started(startWorker('load.mjs'));
  const shared = gatewayEnvironment(databaseUrl, vendor.url);
  const gateway = ({ env = {}, preload } = {}) =>
    started(startGateway(folder, { ...shared, ...env }, preload));
  const floor = (kind) => started(startWorker('floor.mjs', [kind, vendor.url]));
  /** Whose latency and memory are looked at too. */
  const starters = {
    [FLOOR]: () => floor('fastify'),
    [BARE_HTTP]: () => floor('http'),
    [GATEWAY]: () => gateway(),
  };

  const first = await gateway();
  const headers = await registerUser(first.url);
  const targets = [];
  const add = (name, target, suites, more = {}) =>
    targets.push({ ...target, name, suites, headers: { ...headers, ...more } });
  for (const [name, start] of Object.entries(starters)) {
    add(name, name === GATEWAY ? first : await start(), everySuite);
  }
  add(CACHED, await gateway(), ['json'], { 'x-gateway-cache': 'true' });
  for (const [name, options] of Object.entries(telemetryGateways(vendor.url))) {
    add(name, await gateway(options), streamSuites);
  }

  const stage = { vendor, load, quick };
  console.log('Warming up ...');
  await warmUp(stage, targets);
  const direct = { ...vendor, name: DIRECT, suites: ['latency'] };
  const rounds = await measureRounds(stage, [...targets, direct]);
  for (const target of targets) await target.stop();

  const held = {};
  for (const [name, start] of Object.entries(starters)) {
    const target = { ...(await start()), headers };
    held[name] = await measureHeld(stage, target);
    await target.stop();
  }
  return { rounds, held };
}
