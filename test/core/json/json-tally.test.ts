import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonBounds } from '../../../src/core/json/json-tally.ts';
import { longestKeyBytes, tallyJson } from '../../../src/core/json/json-tally.ts';

const none: JsonBounds = {
  values: Number.POSITIVE_INFINITY,
  depth: Number.POSITIVE_INFINITY,
  keys: Number.POSITIVE_INFINITY,
  longDigits: Number.POSITIVE_INFINITY,
};
const bounds = (some: Partial<JsonBounds>): JsonBounds => ({ ...none, ...some });
const isBeyond = (text: Buffer, some: JsonBounds): boolean => typeof tallyJson(text, some) === 'string';

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

test.each([
  ['as they are', 'k'],
  ['in two bytes each', 'é'],
  ['as escapes', '\\u006b'],
])('a key is bounded by how it is written: characters %s', (_name, letter) => {
  const most = Math.floor(longestKeyBytes / Buffer.byteLength(letter));
  const text = (length: number) => Buffer.from(`{"a":[{"${letter.repeat(length)}":1}]}`);
  expect(isBeyond(text(most), none)).toBe(false);
  expect(tallyJson(text(most + 1), none)).toBe('keyBytes');
  // No key, however long.
  expect(isBeyond(Buffer.from(JSON.stringify(['k'.repeat(20_000), 1])), none)).toBe(false);
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
  ['longDigits', (count) => `["1",2,${'3'.repeat(Math.max(20, count))}]`],
])('the bound of %s', (name, text) => {
  // The least that a long number counts is 20.
  test.each([21, 22, 100, 5000])('is %d', (count) => {
    expect(isBeyond(Buffer.from(text(count)), bounds({ [name]: count }))).toBe(false);
    expect(isBeyond(Buffer.from(text(count + 1)), bounds({ [name]: count }))).toBe(true);
    expect(isBeyond(Buffer.from(text(count + 1)), none)).toBe(false);
  });
});

describe('the digits of long numbers', () => {
  const digitsOf = (text: string): number => {
    const tally = tallyJson(Buffer.from(text), none);
    return typeof tally === 'string' ? Number.NaN : tally.longDigits;
  };

  test.each<[text: string, digits: number]>([
    ['123456789012345', 0],
    ['1234567890.1234', 0],
    ['1e99', 0],
    ['-1E-99', 0],
    ['"1234567890123456789012345"', 0],
    ['"\\"1e400",2', 0],
    ['1234567890123456', 20],
    ['0.123456789012345', 20],
    ['1e100', 20],
    ['-1.5E-400', 20],
    ['12345678901234567890123', 23],
    ['12345678901234567890e12', 22],
    ['[1e400,2,{"a":12345678901234567890123}]', 43],
    ['1234567890123456 1e+1e+', 20],
    ['1e', 0],
    ['', 0],
  ])('of %s are %d', (text, digits) => expect(digitsOf(text)).toBe(digits));
});
