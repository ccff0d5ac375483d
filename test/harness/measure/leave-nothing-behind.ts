/**
 * Loaded before every test file (vitest.config.ts). Fails a file that leaves a process, a socket or a
 * timer behind: what outlives its test disturbs others, and here nobody ends it. A test that failed half-way, at its
 * first try perhaps, could not tidy up: there its failure is all that is told.
 */
import type { RunnerTask } from 'vitest';
import { aroundAll } from 'vitest';
import { leftBehind, underWay } from './left-behind.ts';

/** Counted in looks: while the machine stands still, nobody looks. What was told to end has ended after so many. */
const mostLooks = 300;
const pauseMs = 10;

/** Kept, since tests fake the timers of their process. */
const startTimer = setTimeout;

// Opened when they are first asked for, by whoever is first.
void [process.stdin, process.stdout, process.stderr];
const before = underWay();

// biome-ignore lint/correctness/noEmptyPattern: vitest reads from it that no fixture is wanted
aroundAll(async (runSuite, {}, suite) => {
  await runSuite();
  if (hasFailed(suite)) return;
  for (let looks = 1; ; looks += 1) {
    const left = leftBehind(before, underWay());
    if (left.length === 0) return;
    if (looks === mostLooks) throw new Error(`left behind: ${counted(left)}`);
    await new Promise((resolve) => startTimer(resolve, pauseMs));
  }
});

/** A test did, at its last try or before. */
function hasFailed(task: RunnerTask): boolean {
  if (task.type === 'suite') return task.tasks.some(hasFailed);
  return task.result?.state === 'fail' || (task.result?.retryCount ?? 0) > 0;
}

/** Each kind once, with how many there are where it is more than one. */
function counted(left: readonly string[]): string {
  return [...Map.groupBy(left, (name) => name)]
    .map(([name, all]) => (all.length === 1 ? name : `${name} × ${all.length}`))
    .join(', ');
}
