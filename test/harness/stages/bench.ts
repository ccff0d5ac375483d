import { readFileSync, writeFileSync } from 'node:fs';
import { benchmark } from '../bench/benchmark.ts';
import { leaveLastCore } from '../bench/cores.ts';
import type { Turns } from '../bench/measure.ts';
import { amongNeighbours } from '../bench/neighbours.ts';
import { page } from '../bench/page.ts';
import type { Suite } from '../bench/suites.ts';
import { dutyTable, processTable, ratio, telemetryTable, tlsTable } from '../bench/tables.ts';
import { ALL_TRACES, ANTHROPIC, CACHED, FLOOR, FLOOR_TLS, GATEWAY } from '../bench/targets.ts';
import { mustBuild } from '../stage/build.ts';
import { buildMeasured } from '../stage/measured.ts';
import { inProject, StageError } from '../stage/project.ts';
import type { Tally } from '../stage/run-stage.ts';
import { oneSkip, runStage, withPostgres } from '../stage/run-stage.ts';

interface Guard {
  readonly target: string;
  readonly suite: Suite;
  readonly atMost: number;
}

/**
 * What these may cost at most, by what they take turns with: twice what docs/performance.md says. Beside a load of 16 on
 * two cores the ratios were found 1.8 times as high.
 */
const guards: readonly Guard[] = [
  { target: GATEWAY, suite: 'json', atMost: 3.5 },
  { target: GATEWAY, suite: 'burst', atMost: 2.5 },
  { target: CACHED, suite: 'json', atMost: 2.5 },
  { target: ANTHROPIC, suite: 'burst', atMost: 3 },
  { target: ALL_TRACES, suite: 'json', atMost: 2.6 },
];
const guarded = {
  targets: guards.map(({ target }) => target),
  suites: guards.map(({ suite }) => suite),
};

/**
 * `npm run bench [-- YYYY-MM-DD | --quick | --guard]`: what the built gateway costs, against bare forwarders on the same
 * stack, and what TLS and telemetry cost. Prints tables of ratios and writes docs/performance.md. Three quarters of an hour;
 * on loopback only. With `--guard` it fails where a request or an event costs far more than it should.
 */
await runStage(async () => {
  if (process.platform !== 'linux') {
    console.log('Skipped: CPU times are read from /proc, which only Linux has.');
    return oneSkip;
  }
  const [argument] = process.argv.slice(2);
  const [quick, guard] = [argument === '--quick', argument === '--guard'];
  const date = (quick || guard ? undefined : argument) ?? new Date().toISOString().slice(0, 10);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) throw new StageError(`"${date}" is not a date like 2026-01-31.`);
  await mustBuild();
  await buildMeasured();

  const only = guard ? { only: guarded } : {};
  leaveLastCore();
  const [{ turns, held }, neighbours] = await amongNeighbours(() =>
    withPostgres((folder, databaseUrl, postgresPid) =>
      benchmark({ folder, databaseUrl, postgresPid, quick, ...only }),
    ),
  );
  if (guard) return judge(turns);
  console.log(`\nCPU against ${FLOOR}, median ± standard error:\n\n${dutyTable(turns, held)}\n`);
  console.log(`CPU against ${FLOOR_TLS}:\n\n${tlsTable(turns)}\n`);
  console.log(`CPU against "${GATEWAY}":\n\n${telemetryTable(turns)}\n\n${processTable(turns)}\n`);
  const file = inProject('docs', 'performance.md');
  if (!quick) writeFileSync(file, page({ turns, held, date, neighbours }, readFileSync(file, 'utf8')));
  return { passed: 1, failed: 0, skipped: 0 };
});

function judge(turns: Turns): Tally {
  const tally = { passed: 0, failed: 0, skipped: 0 };
  for (const { target, suite, atMost } of guards) {
    const { middle, error } = ratio(turns, suite, target);
    console.log(`${target}, ${suite}: ${middle.toFixed(2)} ± ${error.toFixed(2)}, at most ${atMost}`);
    if (Number.isNaN(middle)) console.log('Skipped: no slice was left undisturbed.');
    const isDear = middle - 2 * error > atMost;
    tally[Number.isNaN(middle) ? 'skipped' : isDear ? 'failed' : 'passed'] += 1;
  }
  return tally;
}
