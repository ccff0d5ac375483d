/** Every limit of the table, whatever it is: it can be set, holds, refuses, and can be lifted again. */
import { describe, expect, test } from 'vitest';
import { budgetRefusal, hasBudget, periodsAt } from '../../../src/core/limits/budget.ts';
import type { LimitName } from '../../../src/core/limits/limit-table.ts';
import {
  countedLimits,
  limitFields,
  limitNames,
  limitTable,
  minuteRows,
  refusingLimits,
} from '../../../src/core/limits/limit-table.ts';
import { countsMinutes, minuteRefusal } from '../../../src/core/limits/minute.ts';
import { limitError } from '../../../src/core/limits/refusal.ts';
import type { Limits } from '../../../src/core/limits/user-limits.ts';
import { compileDefaults, compileExceptions, limitsOf } from '../../../src/core/limits/user-limits.ts';
import { UserMinute } from '../../../src/core/limits/user-minute.ts';

const wallMs = Date.UTC(2026, 10, 23);

/** What refuses a request of a user who has used up one of each that is limited. */
function refusalOf(limits: Limits) {
  const used = Object.fromEntries(minuteRows.map(({ refusal }) => [refusal, 1]));
  const counts = { requests: 0, tokens: 0, streams: 0, leftMs: 1, ...used };
  const spent = { day: 1_000_000n, month: 1_000_000n };
  const counted = countsMinutes(limits) ? minuteRefusal(limits, counts, true) : null;
  return counted ?? (hasBudget(limits) ? budgetRefusal(limits, spent, periodsAt(wallMs), wallMs) : null);
}

describe.each(limitNames)('%s', (name: LimitName) => {
  const row = limitTable[name];

  test('alone is not the same as no limits, and refuses in its own name', () => {
    const limits = compileDefaults({ [name]: 1 }) as Limits;
    expect(Object.entries(limits).filter(([, most]) => most !== null)).toEqual([
      [row.field, expect.anything()],
    ]);
    const refusal = refusalOf(limits);
    expect(refusal).toMatchObject({ limit: row.refusal, most: limits[row.field] });
    expect(limitError(refusal as NonNullable<typeof refusal>, {}).status).toBe(429);
    expect([countsMinutes(limits), hasBudget(limits)]).toEqual([
      row.kind === 'minute',
      row.kind === 'budget',
    ]);
  });

  test('holds and is lifted for one user', () => {
    const exception = compileExceptions({ [name]: 1 });
    expect(limitsOf(null, exception)).toEqual(compileDefaults({ [name]: 1 }));
    expect(limitsOf(compileDefaults({ [name]: 1 }), compileExceptions({ [name]: null }))).toBe(null);
    expect(limitsOf(compileDefaults({ [name]: 1 }), compileExceptions({}))).toEqual(
      compileDefaults({ [name]: 1 }),
    );
  });
});

test.each(countedLimits)(
  '%s are counted of a request that this replica admits alone and settles',
  (limit) => {
    const minute = new UserMinute('user');
    minute.admitAlone(0, false);
    minute.spend(1, 0);
    expect(minute.counts(0, false)[limit]).toBe(1);
  },
);

test('no two limits share a field or a name of a refusal', () => {
  expect(new Set(limitFields).size).toBe(limitNames.length);
  expect(new Set(refusingLimits).size).toBe(limitNames.length);
});
