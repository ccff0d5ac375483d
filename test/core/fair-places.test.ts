import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FairPlaces } from '../../src/core/fair-places.ts';

/** How many the holders get who each take as many as they can, one after the other. */
function greedy(limit: number, perHolder: number, holders: number, openShare = 0): number[] {
  const places = new FairPlaces(limit, perHolder, openShare);
  return Array.from({ length: holders }, (_, slot) => {
    let held = 0;
    while (places.take(slot)) held += 1;
    return held;
  });
}

describe('whoever holds fewer than are free gets one more, and a quarter is for those who hold none', () => {
  test.each([
    ['one alone gets less than half', 16, 16, [6, 3, 2, 1, 1, 1, 1, 1, 0]],
    ['and no more than one holder may', 16, 4, [4, 4, 2, 1, 1, 1, 1, 1, 1, 0]],
    ['of the gateway’s own', 2048, 512, [512, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1, 1]],
    ['an odd number', 5, 5, [2, 1, 1, 1, 0]],
    ['a single one', 1, 1, [1, 0]],
    ['none', 0, 1, [0]],
  ])('%s', (_name, limit, perHolder, expected) => {
    expect(greedy(limit, perHolder, expected.length)).toEqual(expected);
  });

  test.each([
    ['one alone gets the open half', 16, [8, 2, 1, 1, 1, 1, 1, 1, 0]],
    ['of six thousand', 6000, [3000, 750, 375, 188]],
  ])('where half is for whoever asks: %s', (_name, limit, expected) => {
    expect(greedy(limit, limit, expected.length, 1 / 2)).toEqual(expected);
  });

  test('a dozen who take all they can get leave room for five hundred others', () => {
    const places = new FairPlaces(2048, 512);
    for (let hog = 0; hog < 12; hog += 1) while (places.take(hog));
    const others = Array.from({ length: 500 }, (_, index) => places.take(12 + index));
    expect(others).not.toContain(false);
    for (let hog = 0; hog < 12; hog += 1) expect(places.take(hog)).toBe(false);
  });

  test('and what is given back can be taken again', () => {
    const places = new FairPlaces(4, 4);
    expect([places.take(1), places.take(1), places.take(1)]).toEqual([true, true, false]);
    places.give(1);
    expect([places.taken, places.take(1), places.take(1)]).toEqual([1, true, false]);
  });

  test('in any order, never more than there are, and one who holds none finds the last one', () => {
    const steps = fc.array(fc.record({ slot: fc.nat(5), take: fc.boolean() }), { maxLength: 200 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), steps, (limit, all) => {
        const places = new FairPlaces(limit, limit);
        const held = new Map<number, number>();
        for (const { slot, take } of all) {
          const mine = held.get(slot) ?? 0;
          const free = limit - places.taken;
          if (take) {
            const got = places.take(slot);
            const reserved = mine === 0 ? 0 : Math.floor(limit / 4);
            expect(got).toBe(mine < free - reserved);
            if (got) held.set(slot, mine + 1);
          } else if (mine > 0) {
            places.give(slot);
            held.set(slot, mine - 1);
          }
          expect(places.taken).toBe([...held.values()].reduce((sum, count) => sum + count, 0));
          expect(places.taken).toBeLessThanOrEqual(limit);
        }
      }),
    );
  });
});
