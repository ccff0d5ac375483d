import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { DIRECT, FLOOR, page, resultTable } from './bench/page.mjs';
import { build } from './lib/build.mjs';
import { inProject, LaunchError } from './lib/project.mjs';
import { oneSkip, runStage, withPostgres } from './lib/stage.mjs';

/**
 * `npm run bench [-- YYYY-MM-DD]`: what the built gateway costs, against bare forwarders on the same stack. Prints a
 * table of ratios and writes docs/performance.md. Less than four minutes; on loopback only.
 */

const everySuite = ['json', 'burst', 'paced', 'latency'];
/** How long we look at what else runs. */
const LOOK_MS = 1_000;

await runStage('scripts/bench.mjs', async (node) => {
  if (process.platform !== 'linux') {
    console.log('Skipped: CPU times are read from /proc, which only Linux has.');
    return oneSkip;
  }
  const date = process.argv[2] ?? new Date().toISOString().slice(0, 10);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) throw new LaunchError(`"${date}" is not a date like 2026-01-31.`);
  if (!(await build(node))) throw new LaunchError('The build failed; the compiler says why above.');

  const before = await busyCores();
  const { rounds, held } = await withPostgres(benchmark);
  const foreignCores = Math.max(before, await busyCores());
  console.log(`\nCPU against ${FLOOR}, median (least–most):\n\n${resultTable(rounds, held)}\n`);
  writeFileSync(inProject('docs', 'performance.md'), page({ rounds, held, date, foreignCores }));
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
async function benchmark(folder, databaseUrl) {
  const running = [];
  const started = async (starting) => {
    const one = await starting;
    running.push(one);
    return one;
  };
  try {
    return await measureAll(started, databaseUrl, folder);
  } finally {
    await Promise.all(running.map((one) => one.stop()));
  }
}

async function measureAll(started, databaseUrl, folder) {
  const { gatewayEnvironment, registerUser, startGateway, startWorker } = await import(
    './bench/processes.mjs'
  );
  const { measureHeld, measureRounds, warmUp } = await import('./bench/measure.mjs');
  const vendor = await started(startWorker('vendor.mjs'));
  const load = await started(startWorker('load.mjs'));
  const env = gatewayEnvironment(databaseUrl, vendor.url);
  const gateway = (extra = {}) => started(startGateway(folder, { ...env, ...extra }));
  const floor = (kind) => started(startWorker('floor.mjs', [kind, vendor.url]));
  /** What gets all suites. */
  const starters = {
    [FLOOR]: () => floor('fastify'),
    'bare node:http': () => floor('http'),
    gateway: () => gateway(),
  };

  const first = await gateway();
  const headers = await registerUser(first.url);
  const targets = [];
  for (const [name, start] of Object.entries(starters)) {
    const target = name === 'gateway' ? first : await start();
    targets.push({ ...target, name, headers, suites: everySuite });
  }
  const variant = (name, target, more = {}) =>
    targets.push({ ...target, name, headers: { ...headers, ...more }, suites: ['json'] });
  variant('gateway, no access line', await gateway({ GW_LOG_LEVEL: 'warn' }));
  variant('gateway, tracing on', await gateway({ OTEL_EXPORTER_OTLP_ENDPOINT: vendor.url }));
  variant('gateway, from the cache', await gateway(), { 'x-gateway-cache': 'true' });

  const stage = { vendor, load };
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
