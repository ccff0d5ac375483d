import { describe, expect, test } from 'vitest';
import { BodyBudget } from '../../src/http/body/body-budget.ts';
import type { Phase } from '../../src/http/life.ts';
import { Life } from '../../src/http/life.ts';
import { unreadAnswers } from '../harness/gateway/unread-answers.ts';

const phases: readonly Phase[] = ['serving', 'draining', 'closing'];

describe.each(phases)('a process that is %s', (from) => {
  test.each(phases)('may be %s next, or not', (next) => {
    const life = new Life(new BodyBudget(1), unreadAnswers());
    for (const phase of phases.slice(1, phases.indexOf(from) + 1)) life.to(phase);
    const move = () => life.to(next);
    if (phases.indexOf(next) === phases.indexOf(from) + 1) move();
    else expect(move).toThrow(`a process that is ${from} cannot be ${next}`);
    expect(life.phase).toBe(phases.indexOf(next) === phases.indexOf(from) + 1 ? next : from);
  });
});
