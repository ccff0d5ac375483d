/** Who is admitted under limits, what a request holds until its end, and what of it counts when it is settled. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Limits } from '../../src/core/limits/user-limits.ts';
import { compileDefaults } from '../../src/core/limits/user-limits.ts';
import type { SettledRequest } from '../../src/core/settled-request.ts';
import { Budgets } from '../../src/limits/budgets.ts';
import { LimitGate } from '../../src/limits/limit-gate.ts';
import { UserMinutes } from '../../src/limits/user-minutes.ts';
import { logRow } from '../adapters/postgres/log-rows.ts';

type NamedLimits = Parameters<typeof compileDefaults>[0];

const dollar = 1_000_000n;
const limitsOf = (named: NamedLimits): Limits => compileDefaults(named) as Limits;

/** A gate of one replica; `spentDollars`: what its database says of everybody. */
function start(named: NamedLimits, spentDollars = 0n) {
  const monotonicMs = () => 0;
  const spent = { day: spentDollars * dollar, month: spentDollars * dollar };
  const minutes = new UserMinutes({ monotonicMs, store: null, onDecided: () => undefined });
  const budgets = new Budgets({
    isBehind: () => false,
    read: async (userIds) => new Map(userIds.map((userId) => [userId, spent])),
    wallMs: () => Date.UTC(2026, 10, 22),
    monotonicMs,
    onReached: () => undefined,
  });
  const gate = new LimitGate(minutes, budgets);
  onTestFinished(() => gate.close());
  const limits = limitsOf(named);
  const known = () => gate.known('ada', limits)?.refusal.limit ?? null;
  const ask = async (isStream = false) => {
    const decision = await gate.admit('ada', limits, isStream);
    if (decision === null) return null;
    return 'refusal' in decision ? decision.refusal.limit : gate.hold(decision, isStream);
  };
  const settle = (change: Partial<SettledRequest>) => gate.settled(logRow({ userId: 'ada', ...change }));
  return { gate, limits, known, ask, settle };
}

describe('a budget', () => {
  test('that is spent refuses before the minute is looked at, and then early', async () => {
    const { gate, limits, known, ask } = start({ budget_usd_per_day: '1', requests_per_minute: 1 }, 1n);
    expect(known()).toBe(null);
    expect(await ask()).toBe('budget_day');
    expect(await ask()).toBe('budget_day');
    expect(known()).toBe('budget_day');
    expect(gate.known('ada', limits)?.counts).toBe(null);
  });

  test('alone counts nothing by the minute, so there is nothing to hold', async () => {
    const { ask } = start({ budget_usd_per_day: '1' });
    expect(await ask()).toBe(null);
    expect(await ask()).toBe(null);
  });

  test('is used up by what answers cost', async () => {
    const { ask, settle } = start({ budget_usd_per_day: '1' });
    await ask();
    settle({ costMicroUsd: dollar });
    expect(await ask()).toBe('budget_day');
  });
});

describe('a minute', () => {
  test('that is full refuses, and early from then on', async () => {
    const { gate, limits, known, ask } = start({ requests_per_minute: 1 });
    await ask();
    expect(await ask()).toBe('requests');
    expect(known()).toBe('requests');
    expect(gate.known('ada', limits)?.counts).toMatchObject({ requests: 1 });
  });

  test.each<[string, Partial<SettledRequest>, string | null]>([
    ['counts those of an answer', {}, 'tokens'],
    [
      'counts none of a stored answer',
      { cachedFrom: { provider: 'openai', model: 'm', requestId: 'r', traceId: null } },
      null,
    ],
  ])('of tokens %s', async (_, change, refusal) => {
    const { ask, known, settle } = start({ tokens_per_minute: 18 });
    await ask();
    settle(change);
    expect(known()).toBe(refusal);
  });
});

test('a stream gives back its place once, when the client has its answer or when it is settled', async () => {
  const { ask } = start({ streams: 1 });
  const first = await ask(true);
  expect(await ask(true)).toBe('streams');
  if (first === null || typeof first === 'string') throw new Error(`it was refused: ${first}`);
  first.endStream();
  first.end();
  const second = await ask(true);
  expect(second).toBeTypeOf('object');
  expect(await ask(true)).toBe('streams');
});
