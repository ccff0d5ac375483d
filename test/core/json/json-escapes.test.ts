import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { tallyEscapes } from '../../../src/core/json/json-escapes.ts';

const unbounded = Number.POSITIVE_INFINITY;
const anyEscape = /\\(?:u[0-9a-fA-F]{4}|.)/g;
const pair = /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}/g;
const half = /\\u[dD][89a-fA-F][0-9a-fA-F]{2}/g;
const count = (text: string, what: RegExp): number => text.match(what)?.length ?? 0;

/** The same by expressions, which would take a second where it matters. */
function expected(text: string): { weight: number; spellsByNumber: boolean } {
  // An escaped backslash is no begin of another escape.
  const plain = text.replaceAll('\\\\', '\\/');
  const lone = count(plain.replaceAll(pair, ''), half);
  return {
    weight: count(plain, anyEscape) - count(plain, pair) + 9 * lone,
    spellsByNumber: plain.includes('\\u'),
  };
}

const piece = fc.constantFrom(
  ...[
    'a',
    '\\n',
    '\\"',
    '\\\\',
    '\\/',
    'u',
    'd83d',
    '\\u0041',
    '\\u4E2d',
    '\\uD83d',
    '\\uDe00',
    '\\ud83d\\ude00',
  ],
  'x'.repeat(63),
  'x'.repeat(200),
  '\u4e2d',
);

describe('the escapes of a JSON text', () => {
  test('are counted, a pair of halves as one, and half a character as ten', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const text = JSON.stringify(pieces.join('')) === '""' ? '""' : `"${pieces.join('')}"`;
        expect(tallyEscapes(Buffer.from(text), unbounded)).toEqual(expected(text));
      }),
    );
  });

  test.each(['\\n', '\\"', '\\\\', '\\u4e2d', '\\ud83d\\ude00', `${'x'.repeat(100)}\\t`])(
    'are bounded: %j',
    (text) => {
      const json = Buffer.from(`"${text.repeat(1_000)}"`);
      expect(tallyEscapes(json, 1_000)?.weight).toBe(1_000);
      expect(tallyEscapes(json, 999)).toBeNull();
    },
  );

  test('are bounded by what they take: half a character weighs ten', () => {
    const json = Buffer.from(`"${'\\ud800'.repeat(100)}"`);
    expect(tallyEscapes(json, 1_000)?.weight).toBe(1_000);
    expect(tallyEscapes(json, 999)).toBeNull();
  });

  test.each(['', '"', '\\', '"\\', '"\\u', '"\\ud8', '"\\ud800\\', '"\\ud800\\u"'])(
    'end where the text breaks off: %j',
    (text) => {
      expect(tallyEscapes(Buffer.from(text), unbounded)).not.toBeNull();
    },
  );
});
