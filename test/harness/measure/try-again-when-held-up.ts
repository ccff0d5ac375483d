/**
 * Loaded before every test file (vitest.config.ts). A test that failed while the machine stood still proves nothing: it
 * is tried again, twice at most, and the end of the run names it. On a machine that runs nothing is tried twice.
 */
import type { RunnerTask } from 'vitest';
import { beforeAll, beforeEach } from 'vitest';
import { forgetHoldUps, holdUps, triesWhenHeldUp } from './held-up.ts';

function allowAnotherTry(task: RunnerTask): void {
  if (task.type === 'suite') for (const inner of task.tasks) allowAnotherTry(inner);
  else task.retry = triesWhenHeldUp(task.retry, holdUps);
}

// biome-ignore lint/correctness/noEmptyPattern: vitest reads from it that no fixture is wanted
beforeAll(({}, suite) => allowAnotherTry(suite));
beforeEach(forgetHoldUps);
