import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonBounds } from '../../../src/core/json/json-values.ts';
import { isBeyond } from '../../../src/core/json/json-values.ts';

const none: JsonBounds = {
  values: Number.POSITIVE_INFINITY,
  depth: Number.POSITIVE_INFINITY,
  keys: Number.POSITIVE_INFINITY,
};
const bounds = (some: Partial<JsonBounds>): JsonBounds => ({ ...none, ...some });

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
        expect(isBeyond(text, bounds({ values: count }))).toBe(false);
        if (count > 0) expect(isBeyond(text, bounds({ values: count - 1 }))).toBe(true);
      }),
      { examples: [['[{,:"'], [['\\', '"', '\\"', '\\\\']], [{ '":{': ['[', '\\\\"['] }]] },
    );
  });

  test.each(['"', '"\\', '"a\\"', '[[["', ''])('end where the text breaks off: %j', (text) => {
    expect(isBeyond(Buffer.from(text), bounds({ values: 10 }))).toBe(false);
  });
});

describe.each<[keyof JsonBounds, (count: number) => string]>([
  [
    'values',
    (count) =>
      `[${Array(count - 1)
        .fill(0)
        .join(',')}, 0]`,
  ],
  ['depth', (count) => '['.repeat(count) + ']'.repeat(count)],
  [
    'keys',
    (count) => `{"x":[{"y":1}],${Array.from({ length: count - 1 }, (_, i) => `"${i}":{"z":1}`).join(',')}}`,
  ],
])('the bound of %s', (name, text) => {
  test.each([2, 3, 100, 5000])('is %d', (count) => {
    expect(isBeyond(Buffer.from(text(count)), bounds({ [name]: count }))).toBe(false);
    expect(isBeyond(Buffer.from(text(count + 1)), bounds({ [name]: count }))).toBe(true);
    expect(isBeyond(Buffer.from(text(count + 1)), none)).toBe(false);
  });
});
