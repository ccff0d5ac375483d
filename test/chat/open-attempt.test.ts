import { expect, test, vi } from 'vitest';
import type { OpenAttempt } from '../../src/chat/open-attempt.ts';
import { noUsage } from '../../src/core/answer/usage.ts';
import type { AttemptFailure } from '../../src/core/outcome.ts';
import { callOf, candidateOf, testTables, World } from './story.ts';

/** Every way an attempt can end, from both states, and a second end after each. */

const tables = testTables();
const facts = { firstTokenMs: 1, usage: noUsage, answer: null };
const failure = { kind: 'refused', reason: '', status: 400, blamesCandidate: false } as AttemptFailure;

const ends: readonly [kind: string, end: (attempt: OpenAttempt) => void][] = [
  ['served', (attempt) => attempt.served(facts)],
  ['failed', (attempt) => attempt.failed(failure)],
  ['cut', (attempt) => attempt.cut('closed', facts)],
  ['cancelled', (attempt) => attempt.cancelled('client-gone', {})],
];

function begin(): { world: World; attempt: OpenAttempt } {
  const world = new World();
  return { world, attempt: world.openAttempt(callOf({ tables }), candidateOf('openai', tables)) };
}

test.each(ends)('an attempt that ended as %s is told once, and cannot end again', (kind, end) => {
  const { world, attempt } = begin();
  if (kind === 'cut') attempt.opened();
  end(attempt);
  const toldBreakers = ['succeeded', 'failed', 'abandoned'] as const;
  const told = toldBreakers.map((move) => vi.spyOn(world.breakers, move));
  for (const [, again] of ends) expect(() => again(attempt)).toThrow(/ended/);
  for (const spy of told) expect(spy).not.toHaveBeenCalled();
  expect(() => attempt.opened()).toThrow(/ended/);
  expect(world.telemetry.attempts.map((record) => record.end.kind)).toEqual([kind]);
});

test('an attempt is opened once', () => {
  const { attempt } = begin();
  attempt.opened();
  expect(() => attempt.opened()).toThrow(/opened/);
});
