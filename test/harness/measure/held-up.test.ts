import { expect, test } from 'vitest';
import type { Moment } from './held-up.ts';
import { allowedMs, HoldUpProbe, triesWhenHeldUp } from './held-up.ts';

const quiet = { longestMs: 0, lateness: 1, crowding: 1 };
const failure = new Error('expected 1 to be 2');
const at = (atMs: number, cpuMs = 0): Moment => ({ atMs, cpuMs });

test.each([
  ['on a quiet machine thrice the bound', 50, quiet, 150],
  ['no less when timers come early', 50, { ...quiet, longestMs: 0, lateness: 0.9 }, 150],
  ['as much more as timers come late', 50, { ...quiet, longestMs: 0, lateness: 2 }, 300],
  ['as much more as others want its core', 50, { ...quiet, crowding: 6 }, 900],
  ['thrice what the machine stood still besides', 50, { ...quiet, longestMs: 4_500, lateness: 1 }, 13_650],
  ['both', 200, { ...quiet, longestMs: 1_000, lateness: 1.5 }, 3_900],
])('a limit is %s', (_name, boundMs, held, expected) => {
  expect(allowedMs(boundMs, held)).toBe(expected);
});

test.each<[string, number[], number, typeof quiet]>([
  ['no look yet', [], 5, quiet],
  ['looks in time', [10, 20, 30], 35, quiet],
  ['timers that come half as late again', [15, 30, 45], 50, { ...quiet, longestMs: 0, lateness: 1.5 }],
  [
    'one stall, which is no lateness',
    [10, 20, 3_030, 3_040],
    3_045,
    { ...quiet, longestMs: 3_000, lateness: 1 },
  ],
  ['the longest of two stalls', [10, 120, 330], 335, { ...quiet, longestMs: 200, lateness: 1 }],
  ['a stall that this turn has ended', [10, 20], 1_030, { ...quiet, longestMs: 1_000, lateness: 1 }],
])('the probe tells %s', (_name, looks, nowMs, expected) => {
  const probe = new HoldUpProbe(at(0));
  for (const atMs of looks) probe.lookedAt(at(atMs));
  expect(probe.read(at(nowMs), 1)).toEqual(expected);
});

test('what was told is forgotten for the next test', () => {
  const probe = new HoldUpProbe(at(0));
  probe.lookedAt(at(3_000));
  probe.forget(at(6_000));
  probe.lookedAt(at(6_010));
  expect(probe.read(at(6_015), 1)).toEqual(quiet);
});

test('what a process did itself has not held it up', () => {
  const probe = new HoldUpProbe(at(0));
  probe.lookedAt(at(3_000, 2_985));
  expect(probe.read(at(5_000, 4_980), 1).longestMs).toBe(0);
  expect(probe.read(at(5_000, 3_985), 1).longestMs).toBe(990);
});

test('a property that a case has refuted is not tried again', () => {
  const { condition } = triesWhenHeldUp(1, () => ({ ...quiet, longestMs: 3_000 }));
  expect(condition({ message: 'Property failed after 3 tests' })).toBe(false);
  expect(condition(failure)).toBe(true);
});

test.each<[string, number | undefined, number[], boolean[]]>([
  ['not at all on a machine that runs', undefined, [0, 399], [false, false]],
  ['after a hold-up', undefined, [400, 3_000], [true, true]],
  ['once for any reason where the run allows it', 1, [0, 0], [true, false]],
  ['once for any reason, and besides after a hold-up', 1, [3_000, 0, 0], [true, true, false]],
])('a test that failed is tried again %s', (_name, ofRun, heldUpMs, expected) => {
  let tries = 0;
  const { count, condition } = triesWhenHeldUp(ofRun, () => ({
    ...quiet,
    longestMs: heldUpMs[tries] ?? 0,
  }));
  const tried = heldUpMs.map(() => {
    const again = condition(failure);
    tries += 1;
    return again;
  });
  expect(tried).toEqual(expected);
  expect(count).toBe((ofRun ?? 0) + 2);
});
