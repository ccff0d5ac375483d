/**
 * Loaded before every test file (vitest.config.ts). A test that failed while the machine stood still, or was crowded
 * with others' work, proves nothing: it is tried again, twice at most, and the end of the run names it. On a machine of
 * its own nothing is tried twice.
 */
import type { RunnerTask } from 'vitest';
import { beforeAll, beforeEach } from 'vitest';
import { crowding, HoldUpProbe, triesWhenHeldUp } from './held-up.ts';

const clock = performance.now.bind(performance);
const probe = new HoldUpProbe(clock());
setInterval(() => probe.lookedAt(clock()), HoldUpProbe.periodMs).unref();

function allowAnotherTry(task: RunnerTask): void {
  if (task.type === 'suite') for (const inner of task.tasks) allowAnotherTry(inner);
  else task.retry = triesWhenHeldUp(task.retry, () => probe.read(clock(), crowding()));
}

// biome-ignore lint/correctness/noEmptyPattern: vitest reads from it that no fixture is wanted
beforeAll(({}, suite) => allowAnotherTry(suite));
beforeEach(() => probe.forget());
