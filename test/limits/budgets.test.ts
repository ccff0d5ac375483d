/** Soft budgets: what is written down, read now and then, and what was settled here since. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Spent } from '../../src/core/limits/budget.ts';
import type { Limits } from '../../src/core/limits/user-limits.ts';
import { compileDefaults } from '../../src/core/limits/user-limits.ts';
import { Budgets } from '../../src/limits/budgets.ts';

const limits = compileDefaults({ budget_usd_per_day: '1', budget_usd_per_month: '3' }) as Limits;
const dollars = (amount: number): bigint => BigInt(amount * 1_000_000);

/** A world whose clock and sums the test moves. */
function world(start = '2026-11-22T12:00:00Z') {
  const stored = new Map<string, Spent>();
  const state = {
    wallMs: new Date(start).getTime(),
    monotonicMs: 0,
    reads: [] as string[][],
    isAway: false,
    isBehind: false,
    /** While a statement is on its way. */
    onRead: null as (() => void) | null,
    /** Never answered. */
    hangs: false,
    cannotTell: false,
  };
  const reached: string[] = [];
  const budgets = new Budgets({
    read: async (userIds) => {
      state.reads.push([...userIds]);
      if (state.isAway) throw new Error('away');
      if (state.hangs) await new Promise(() => undefined);
      state.onRead?.();
      return new Map([...stored].filter(([userId]) => userIds.includes(userId)));
    },
    isBehind: () => state.isBehind,
    wallMs: () => state.wallMs,
    monotonicMs: () => state.monotonicMs,
    onReached: (userId, period, share) => {
      if (state.cannotTell) throw new Error('a bug of who is told');
      reached.push(`${userId} ${period} ${share}`);
    },
  });
  const pass = (ms: number) => {
    state.wallMs += ms;
    state.monotonicMs += ms;
  };
  const ask = async (userId = 'ada') => (await budgets.check(userId, limits))?.limit ?? null;
  const store = (day: number, month: number, userId = 'ada') =>
    stored.set(userId, { day: dollars(day), month: dollars(month) });
  return { budgets, state, reached, pass, ask, store };
}

/** Until the reading that was begun behind an answer is over. */
const read = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a user', () => {
  test('who is not known is read before the first answer', async () => {
    const { ask, store } = world();
    store(1, 1);
    expect(await ask()).toBe('budget_day');
    store(0, 3, 'bob');
    expect(await ask('bob')).toBe('budget_month');
    expect(await ask('eve')).toBe(null);
  });

  test('is refused by what was settled here, before it is read again', async () => {
    const { budgets, ask, store, state } = world();
    store(0.5, 0.5);
    expect(await ask()).toBe(null);
    budgets.spend('ada', dollars(0.5));
    expect(budgets.known('ada', limits)?.limit).toBe('budget_day');
    expect(await ask()).toBe('budget_day');
    expect(state.reads).toHaveLength(1);
  });

  test('is read again after ten seconds, behind the answer; nothing counts twice', async () => {
    const { budgets, ask, store, pass, state } = world();
    store(0.2, 0.2);
    await ask();
    budgets.spend('ada', dollars(0.4));
    store(0.6, 0.6);
    pass(9_999);
    await ask();
    expect(state.reads).toHaveLength(1);
    pass(1);
    expect(await ask()).toBe(null);
    await read();
    expect(state.reads).toHaveLength(2);
    budgets.spend('ada', dollars(0.39));
    expect(await ask()).toBe(null);
    budgets.spend('ada', dollars(0.01));
    expect(await ask()).toBe('budget_day');
  });

  test.each([
    ['held by', 0.6],
    ['missing in', 0],
  ])('is not refused for what is settled while it is read, %s the reading', async (_what, stored) => {
    const { budgets, ask, store, pass, state, reached } = world();
    await ask();
    pass(10_000);
    budgets.known('ada', limits);
    // The statement has begun: its sums are taken when the answer is settled.
    state.onRead = () => {
      budgets.spend('ada', dollars(0.6));
      store(stored, stored);
      state.onRead = null;
    };
    await read();
    expect(state.reads).toHaveLength(2);
    expect(await ask()).toBe(null);
    expect(reached).toEqual([]);

    store(0.6, 0.6);
    pass(10_000);
    await ask();
    await read();
    budgets.spend('ada', dollars(0.4));
    expect(await ask()).toBe('budget_day');
  });

  test('is let in while the database is away, and goes on being counted', async () => {
    const { budgets, ask, state } = world();
    state.isAway = true;
    expect(await ask()).toBe(null);
    budgets.spend('ada', dollars(1));
    expect(await ask()).toBe('budget_day');
  });

  test('keeps what was settled here when it is read while that is in no table yet, past midnight too', async () => {
    const { budgets, ask, store, pass, state } = world('2026-11-22T23:59:00Z');
    store(0, 2);
    await ask();
    budgets.spend('ada', dollars(1));
    state.isBehind = true;
    for (const ms of [10_000, 49_999, 1, 10_000]) {
      pass(ms);
      await ask();
      await read();
      expect(budgets.known('ada', limits)).not.toBe(null);
    }
    expect([state.reads.length, await ask()]).toEqual([4, 'budget_month']);
  });

  test('is refused by what others spent, however long some row of somebody lies in the spool', async () => {
    const { budgets, ask, store, pass, state } = world();
    await ask();
    state.isBehind = true;
    budgets.spend('ada', dollars(0.3));
    store(0.3, 0.3);
    pass(10_000);
    await ask();
    await read();
    // Its own row is in the reading: it does not count twice.
    budgets.spend('ada', dollars(0.6));
    expect(await ask()).toBe(null);
    store(1, 1);
    pass(10_000);
    await ask();
    await read();
    expect(await ask()).toBe('budget_day');
  });

  test('who is read first meanwhile keeps what was settled here, until a reading holds it', async () => {
    const { budgets, ask, store, pass, state } = world();
    Object.assign(state, { isAway: true, isBehind: true });
    await ask();
    budgets.spend('ada', dollars(0.6));
    state.isAway = false;
    store(0.4, 0.4);
    pass(1_000);
    await ask();
    await read();
    expect(await ask()).toBe('budget_day');
    state.isBehind = false;
    pass(10_000);
    await ask();
    await read();
    expect(await ask()).toBe(null);
  });

  test('waits once for a database that hangs, and not again before the next day', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { budgets, state, pass } = world('2026-11-22T23:59:00Z');
    state.hangs = true;
    const waits = (): boolean => budgets.check('ada', limits) instanceof Promise;
    const together = [waits(), waits()];
    await vi.advanceTimersByTimeAsync(250);
    const later = waits();
    pass(60_000);
    expect([together, later, waits()]).toEqual([[true, true], false, true]);
  });

  test('is read on though a bug keeps who is told from it', async () => {
    const { ask, pass, state, store } = world();
    store(1, 1);
    store(1, 1, 'bob');
    state.cannotTell = true;
    await expect(Promise.all([ask(), ask('bob')])).rejects.toThrow('a bug');
    state.cannotTell = false;
    pass(60_000);
    expect(await ask()).toBe('budget_day');
    expect(await ask('bob')).toBe('budget_day');
    expect(state.reads.at(-1)).toContain('bob');
  });

  test('begins a new day with nothing, and a month with nothing', async () => {
    const { budgets, ask, store, pass } = world('2026-11-29T23:59:00Z');
    store(1, 2.5);
    expect(await ask()).toBe('budget_day');
    pass(60_000);
    store(0, 2.5);
    expect(await ask()).toBe(null);
    budgets.spend('ada', dollars(0.5));
    expect(await ask()).toBe('budget_month');
    pass(86_400_000);
    store(0, 0);
    expect(await ask()).toBe(null);
  });

  test('who has another budget now is judged by it', async () => {
    const { budgets, ask, store } = world();
    store(1, 1);
    expect(await ask()).toBe('budget_day');
    expect(budgets.known('ada', { ...limits, dayMicroUsd: dollars(2) })).toBe(null);
  });
});

test('where a statement fails, fewer users are read at once, and more again when it does not', async () => {
  const { ask, state, pass } = world();
  const ids = Array.from({ length: 400 }, (_, index) => `user-${index}`);
  const sizes = async (): Promise<number[]> => {
    state.reads = [];
    await Promise.all(ids.map((id) => ask(id)));
    await read();
    return state.reads.map((users) => users.length);
  };
  state.isAway = true;
  expect(await sizes()).toEqual([200, 100, 50, 25, 12, 6, 5, 2]);
  state.isAway = false;
  pass(1_000);
  expect(await sizes()).toEqual([5, 10, 20, 40, 80, 160, 85]);
});

test('users who come at once are read by one statement', async () => {
  const { ask, state } = world();
  await Promise.all(['a', 'b', 'c'].map((userId) => ask(userId)));
  expect(state.reads).toEqual([['a', 'b', 'c']]);
});

describe('80 and 100 percent', () => {
  test('are told once each in a period, and counted', async () => {
    const { budgets, ask, store, reached, pass } = world();
    store(0.5, 0.5);
    await ask();
    expect(budgets.reached()).toEqual({ day: { 80: 0, 100: 0 }, month: { 80: 0, 100: 0 } });
    budgets.spend('ada', dollars(0.3));
    budgets.spend('ada', dollars(0.1));
    expect(reached).toEqual(['ada day 80']);
    budgets.spend('ada', dollars(0.1));
    budgets.spend('ada', dollars(1.5));
    expect(reached).toEqual(['ada day 80', 'ada day 100', 'ada month 80']);
    expect(budgets.reached()).toEqual({ day: { 80: 1, 100: 1 }, month: { 80: 1, 100: 0 } });
    pass(3_600_001);
    expect(budgets.reached()).toEqual({ day: { 80: 0, 100: 0 }, month: { 80: 0, 100: 0 } });
  });
});
