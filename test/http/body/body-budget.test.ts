import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BodyBudget } from '../../../src/http/body/body-budget.ts';

const kibibyte = 1024;
/** Room for sixteen of the smallest large bodies. */
const limitBytes = 16 * 65 * kibibyte;

describe('the budget of bodies', () => {
  test('books what a body costs once that is known, in the room of its bytes', () => {
    const budget = new BodyBudget(limitBytes, 1);
    const [small, large] = [budget.open('a', false), budget.open('b', false)];
    expect(small.grow(kibibyte)).toBe(true);
    expect(small.grow(kibibyte, 100 * kibibyte)).toBe(true);
    expect(budget.rooms.small.heldBytes).toBe(100 * kibibyte);
    expect(large.grow(65 * kibibyte)).toBe(true);
    expect(large.grow(65 * kibibyte, limitBytes), 'the only one of its sender').toBe(true);
    expect(budget.rooms.oversize.heldBytes).toBe(limitBytes);
    expect(budget.open('c', false).grow(65 * kibibyte, limitBytes), 'a second one').toBe(false);
    expect(budget.heldBytes).toBe(100 * kibibyte + limitBytes);
  });

  test('admits any body of one who has no other, one at a time', () => {
    const budget = new BodyBudget(limitBytes, 1);
    const [first, second] = [budget.open('a', false), budget.open('b', false)];
    expect(first.grow(2 * limitBytes)).toBe(true);
    expect(first.grow(3 * limitBytes), 'and it may go on growing').toBe(true);
    expect(budget.open('a', false).grow(limitBytes), 'a second one of the same').toBe(false);
    expect(second.grow(limitBytes), 'another one').toBe(false);
    expect(second.grow(limitBytes / 4), 'what is no larger than a share').toBe(true);
    expect(budget.fullness).toBeGreaterThan(1);
    first.release();
    expect(second.grow(limitBytes)).toBe(true);
    expect(budget.heldBytes).toBe(limitBytes);
  });

  test('counts what is kept until it is let go and released, in either order, and no longer', () => {
    const budget = new BodyBudget(limitBytes, 1);
    for (const ends of [
      ['release', 'letGo'],
      ['letGo', 'release'],
      ['release', 'letGo', 'release'],
    ] as const) {
      const hold = budget.open('a', false);
      hold.grow(kibibyte);
      hold.keep();
      const [first, ...others] = ends;
      hold[first]();
      expect(budget.heldBytes, first).toBe(kibibyte);
      for (const end of others) hold[end]();
      expect(budget.heldBytes, ends.join()).toBe(0);
      expect(hold.grow(kibibyte), 'once released').toBe(false);
    }
  });

  test('books the head beside the body, from before its first byte', () => {
    const budget = new BodyBudget(limitBytes, 1);
    const holds = Array.from({ length: 64 }, () => budget.open('a', false, 15 * kibibyte));
    const admitted = holds.filter((hold) => hold.grow(0));
    expect(admitted, 'half of the room for one user').toHaveLength(34);
    expect(budget.open('b', false, 15 * kibibyte).grow(0)).toBe(true);
    expect(admitted[0]?.grow(0, kibibyte)).toBe(true);
    expect(budget.heldBytes).toBe((35 * 15 + 1) * kibibyte);
    for (const hold of admitted) hold.release();
    expect(budget.heldBytes).toBe(15 * kibibyte);
  });

  test('never lets one hold what others need, however many bodies it sends', () => {
    for (const bytes of [1, 100, 10 * kibibyte, 64 * kibibyte, 65 * kibibyte, 200 * kibibyte]) {
      const budget = new BodyBudget(limitBytes, 1);
      for (const hog of ['a', 'b', 'c']) {
        let [count, admitted] = [0, true];
        while (admitted && count < 200_000) {
          admitted = budget.open(hog, false).grow(bytes);
          count += 1;
        }
      }
      expect(budget.open('somebody else', false).grow(bytes), `${bytes} bytes`).toBe(true);
    }
  });

  test('has room apart for small bodies, and for those of strangers', () => {
    const budget = new BodyBudget(limitBytes, 1);
    for (let index = 0; budget.open(`stranger ${index}`, true).grow(64 * kibibyte); index += 1);
    for (let index = 0; index < 10_000; index += 1) budget.open(String(index), true).grow(100);
    expect(budget.heldBytes, 'an eighth').toBeLessThanOrEqual(limitBytes / 8);
    for (let index = 0; index < 100; index += 1) budget.open(String(index), false).grow(65 * kibibyte);
    expect(budget.open('a', false).grow(64 * kibibyte), 'a small one among large ones').toBe(true);
    for (let index = 0; index < 10_000; index += 1) budget.open(String(index), false).grow(64 * kibibyte);
    expect(budget.fullness).toBeGreaterThan(0.9);
  });

  test('books nothing to a request that is over', () => {
    const budget = new BodyBudget(limitBytes, 1);
    const hold = budget.open('a', false);
    budget.onShortage = () => expect.unreachable('nobody lacks room for it');
    hold.release();
    expect(hold.grow(1)).toBe(false);
    hold.earlyLost();
    expect(budget.heldBytes).toBe(0);
  });

  test('holds what the bodies under way have grown to, and nothing once they are over', () => {
    const step = fc.record({
      who: fc.nat(7),
      bytes: fc.oneof(fc.nat(64 * kibibyte), fc.nat(limitBytes)),
      over: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const budget = new BodyBudget(limitBytes, 1);
        const open = (who: number) => budget.open(`owner ${who % 4}`, who % 2 === 0);
        const holds = Array.from({ length: 8 }, (_, who) => open(who));
        const sizes = holds.map(() => 0);
        for (const { who, bytes, over } of steps) {
          if (over) {
            holds[who]?.release();
            holds[who] = open(who);
            sizes[who] = 0;
          } else if (holds[who]?.grow(bytes)) sizes[who] = bytes;
          expect(budget.heldBytes).toBe(sizes.reduce((sum, size) => sum + size, 0));
          expect(budget.heldBytes).toBeLessThanOrEqual((2 + 1 / 8) * limitBytes + limitBytes);
        }
        for (const hold of [...holds, ...holds]) hold.release();
        expect(budget.heldBytes).toBe(0);
        expect(budget.fullness).toBe(0);
      }),
    );
  });
});

test('a process that lacks memory takes no large body further, but small ones, and what it holds already', () => {
  let lacksMemory = false;
  const short: string[] = [];
  const budget = new BodyBudget(1024 * 1024, 1, (bytes) => lacksMemory && bytes >= 4 * 64 * 1024);
  budget.onShortage = (shortage) => short.push(shortage);
  const [large, oversize, small] = ['a', 'b', 'c'].map((owner) => budget.open(owner, false));
  expect(large?.grow(100_000)).toBe(true);
  expect(oversize?.grow(2_000_000)).toBe(true);
  lacksMemory = true;
  expect(large?.grow(100_001)).toBe(false);
  expect(oversize?.grow(2_000_001)).toBe(false);
  expect(large?.grow(100_000)).toBe(true);
  expect(small?.grow(1_000)).toBe(true);
  lacksMemory = false;
  expect(large?.grow(100_001)).toBe(true);
  expect(budget.open('d', false).grow(2_000_000), 'a second one beyond every share').toBe(false);
  large?.earlyLost();
  expect(short).toEqual(['memory', 'memory', 'body_bytes', 'body_bytes']);
});
