/** What one user spends of its budgets, from period to period. */
import { expect, test } from 'vitest';
import { periodsAt } from '../../../src/core/limits/budget.ts';
import { Spender } from '../../../src/core/limits/spender.ts';
import type { Limits } from '../../../src/core/limits/user-limits.ts';
import { compileDefaults } from '../../../src/core/limits/user-limits.ts';

const at = (text: string): number => new Date(text).getTime();
const limits = compileDefaults({
  budget_usd_per_day: '0.000010',
  budget_usd_per_month: '0.000020',
}) as Limits;
const [noon, tomorrow, december] = [
  at('2026-11-29T12:00:00Z'),
  at('2026-11-30T00:00:00Z'),
  at('2026-12-01T00:00:00Z'),
];
const refusedBy = (spender: Spender, wallMs: number) => spender.refusal(wallMs)?.limit ?? null;

test('what was read and settled goes on in the month and not in the next day', () => {
  const spender = new Spender(limits, noon);
  expect(spender.hear({ day: 4n, month: 12n }, periodsAt(noon), 0n)).toBe(true);
  spender.spend(6n);
  expect(refusedBy(spender, noon)).toBe('budget_day');
  expect(spender.enter(noon + 1)).toBe(false);
  expect(spender.enter(tomorrow)).toBe(true);
  expect([refusedBy(spender, tomorrow), spender.own]).toEqual([null, 0n]);
  spender.spend(2n);
  expect(refusedBy(spender, tomorrow)).toBe('budget_month');
  expect(spender.enter(december)).toBe(true);
  expect(refusedBy(spender, december)).toBe(null);
});

test('what cut answers may have cost counts beside every reading, until its period ends', () => {
  const spender = new Spender(limits, noon);
  spender.guess(10n);
  spender.hear({ day: 0n, month: 0n }, periodsAt(noon), 0n);
  expect(refusedBy(spender, noon)).toBe('budget_day');
  spender.enter(tomorrow);
  expect(refusedBy(spender, tomorrow)).toBe(null);
  spender.guess(10n);
  expect(refusedBy(spender, tomorrow)).toBe('budget_month');
  spender.enter(december);
  expect(refusedBy(spender, december)).toBe(null);
});

test('a reading that began yesterday says nothing of today', () => {
  const spender = new Spender(limits, noon);
  spender.enter(tomorrow);
  expect(spender.hear({ day: 10n, month: 10n }, periodsAt(noon), 0n)).toBe(false);
  expect(refusedBy(spender, tomorrow)).toBe(null);
});

test('what was settled while a reading was under way is not in it', () => {
  const spender = new Spender(limits, noon);
  spender.spend(3n);
  const { own } = spender;
  spender.spend(4n);
  spender.hear({ day: 3n, month: 3n }, periodsAt(noon), own);
  expect(spender.own).toBe(4n);
  spender.spend(3n);
  expect(refusedBy(spender, noon)).toBe('budget_day');
});

test('a reading of which nobody can say whether it holds what was settled here counts nothing twice, and forgets nothing', () => {
  const spender = new Spender(limits, noon);
  const hear = (sum: bigint) => spender.hear({ day: sum, month: sum }, periodsAt(noon), null);
  const left = (): bigint => {
    const probe = [...'0123456789'].map(BigInt).find((more) => {
      spender.guess(more);
      const isRefused = refusedBy(spender, noon) !== null;
      spender.guess(-more);
      return isRefused;
    });
    return probe ?? 10n;
  };
  hear(2n);
  spender.spend(3n);
  const lefts = [0n, 5n, 7n, 6n].map((sum) => {
    hear(sum);
    return left();
  });
  expect(lefts).toEqual([5n, 5n, 3n, 3n]);
});

test('shares are told once each, those that were leapt over too', () => {
  const spender = new Spender(limits, noon);
  spender.spend(10n);
  const day = [80, 100].map((share) => ({ period: 'day', share }));
  expect(spender.untoldShares()).toEqual(day);
  expect(spender.untoldShares()).toEqual([]);
  spender.enter(tomorrow);
  spender.spend(6n);
  expect(spender.untoldShares()).toEqual([{ period: 'month', share: 80 }]);
});
