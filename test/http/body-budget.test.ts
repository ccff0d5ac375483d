import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasMoreValues } from '../../src/core/json-values.ts';
import { BodyBudget } from '../../src/http/body-budget.ts';

describe('the budget of large bodies', () => {
  test('is a small part of the heap', () => {
    const { limitBytes } = new BodyBudget();
    expect(limitBytes).toBeGreaterThan(1024 * 1024);
    expect(Number.isInteger(limitBytes)).toBe(true);
  });

  test('admits any body while it is alone, and none beyond the limit otherwise', () => {
    const budget = new BodyBudget(100);
    const [first, second] = [budget.open(), budget.open()];
    expect(first.grow(1_000)).toBe(true);
    expect(first.grow(2_000), 'it is still alone').toBe(true);
    expect(second.grow(1)).toBe(false);
    first.release();
    expect(second.grow(1)).toBe(true);
    expect(budget.heldBytes).toBe(1);
  });

  test('holds what the bodies under way have grown to, and nothing once they are over', () => {
    const step = fc.record({ who: fc.nat(4), bytes: fc.nat(60), over: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const budget = new BodyBudget(100);
        const holds = Array.from({ length: 5 }, () => budget.open());
        const sizes = holds.map(() => 0);
        for (const { who, bytes, over } of steps) {
          if (over) {
            holds[who]?.release();
            sizes[who] = 0;
          } else if (holds[who]?.grow(bytes)) sizes[who] = bytes;
          expect(budget.heldBytes).toBe(sizes.reduce((sum, size) => sum + size, 0));
          expect(budget.heldBytes).toBeLessThanOrEqual(100);
        }
        for (const hold of [...holds, ...holds]) hold.release();
        expect(budget.heldBytes).toBe(0);
      }),
    );
  });
});

describe('the values of a JSON text', () => {
  /** `,` `:` `[` `{` outside of strings. */
  function starts(value: unknown): number {
    if (typeof value !== 'object' || value === null) return 0;
    const inner = Object.values(value).reduce<number>((sum, item) => sum + starts(item), 0);
    const count = Object.keys(value).length;
    return 1 + Math.max(0, count - 1) + (Array.isArray(value) ? 0 : count) + inner;
  }

  test('are counted without those that stand in strings', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = Buffer.from(JSON.stringify(value));
        const count = starts(value);
        expect(hasMoreValues(text, count)).toBe(false);
        if (count > 0) expect(hasMoreValues(text, count - 1)).toBe(true);
      }),
      { examples: [['[{,:"'], [['\\', '"', '\\"', '\\\\']], [{ '":{': ['[', '\\\\"['] }]] },
    );
  });

  test.each(['"', '"\\', '"a\\"', '[[["', ''])('end where the text breaks off: %j', (text) => {
    expect(hasMoreValues(Buffer.from(text), 10)).toBe(false);
  });
});
