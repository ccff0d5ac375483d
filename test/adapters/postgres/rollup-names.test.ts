import { expect, test } from 'vitest';
import { RollupNames } from '../../../src/adapters/postgres/rollup-names.ts';
import { logRow, tenOClockMicros } from './log-rows.ts';

const hourMicros = 3_600_000_000;
const row = (userId: string, model: string, hour = 0) =>
  logRow({
    userId,
    target: { provider: 'openai', model },
    mode: 'override',
    createdAtMicros: tenOClockMicros + hour * hourMicros,
  });

/** How many of `count` new names are told apart. */
function toldApart(names: RollupNames, userId: string, count: number, hour = 0): number {
  let apart = 0;
  for (let index = 0; index < count; index += 1) {
    if (!names.isOther(row(userId, `${userId}-${index}`, hour))) apart += 1;
  }
  return apart;
}

test('a thousand names of a user and hour are told apart', () => {
  const names = new RollupNames();
  expect(toldApart(names, 'a', 3_000)).toBe(1_000);
  expect(toldApart(names, 'a', 1_000), 'those that are known').toBe(1_000);
  expect(toldApart(names, 'b', 10), 'another user').toBe(10);
  expect(toldApart(names, 'a', 3_000, 1), 'the next hour').toBe(1_000);
  expect(names.isOther(row('c', 'late', 0)), 'a row of the hour before').toBe(false);
});

test('models of tiers are bounded by the tables and not counted', () => {
  const names = new RollupNames();
  for (let index = 0; index < 2_000; index += 1) {
    expect(names.isOther({ ...row('a', `m-${index}`), mode: 'gw/cheap' })).toBe(false);
  }
  expect(toldApart(names, 'a', 1)).toBe(1);
});

test('however many users there are, none passes its limit, and what is kept is bounded', () => {
  const names = new RollupNames();
  const apart = new Map<string, number>();
  for (let round = 0; round < 3; round += 1) {
    for (let user = 0; user < 60; user += 1) {
      const told = toldApart(names, `u-${user}`, 1_000);
      apart.set(`u-${user}`, Math.max(apart.get(`u-${user}`) ?? 0, told));
    }
  }
  expect(Math.max(...apart.values())).toBe(1_000);
  expect(names.isOther(row('u-0', 'one more'))).toBe(true);
});
