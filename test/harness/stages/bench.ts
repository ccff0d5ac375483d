import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { benchmark } from '../bench/benchmark.ts';
import { page } from '../bench/page.ts';
import { dutyTable, telemetryTable } from '../bench/tables.ts';
import { FLOOR, UNWATCHED } from '../bench/targets.ts';
import { mustBuild } from '../stage/build.ts';
import { buildMeasured } from '../stage/measured.ts';
import { inProject, StageError } from '../stage/project.ts';
import { oneSkip, runStage, withPostgres } from '../stage/run-stage.ts';

/** How long we look at what else runs. */
const LOOK_MS = 1_000;

/**
 * `npm run bench [-- YYYY-MM-DD | --quick]`: what the built gateway costs, against bare forwarders on the same stack, and
 * what its telemetry costs. Prints tables of ratios and writes docs/performance.md. Less than eight minutes; on loopback
 * only.
 */
await runStage(async () => {
  if (process.platform !== 'linux') {
    console.log('Skipped: CPU times are read from /proc, which only Linux has.');
    return oneSkip;
  }
  const quick = process.argv[2] === '--quick';
  const date = (quick ? undefined : process.argv[2]) ?? new Date().toISOString().slice(0, 10);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) throw new StageError(`"${date}" is not a date like 2026-01-31.`);
  await mustBuild();
  await buildMeasured();

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
async function busyCores(): Promise<number> {
  const busy = () =>
    cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
  const before = busy();
  await delay(LOOK_MS);
  return (busy() - before) / LOOK_MS;
}
