import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bearerToken } from '../../../src/http/access/bearer-token.ts';

const given = (authorization: string, ...lines: readonly string[]) =>
  bearerToken(['Host', 'a', 'Authorization', authorization, ...lines], authorization);

test.each<[authorization: string, token: string | undefined]>([
  ['Bearer gw_x', 'gw_x'],
  ['bearer gw_x', 'gw_x'],
  ['BEARER   gw_x', 'gw_x'],
  [`Bearer ${'x'.repeat(512)}`, 'x'.repeat(512)],
  [`Bearer ${'x'.repeat(513)}`, undefined],
  ['Bearer', undefined],
  ['Bearer ', undefined],
  ['Bearergw_x', undefined],
  ['Bearer gw_x y', undefined],
  ['Bearer gw_x ', undefined],
  ['Bearer\tgw_x', undefined],
  ['Bearer gw_\u00e4', undefined],
  ['Basic gw_x', undefined],
])('%j has the token %j', (authorization, token) => {
  expect(given(authorization)).toBe(token);
});

test('any text has a token exactly where the form of RFC 7235 has one', () => {
  const piece = fc.oneof(
    fc.constantFrom('Bearer ', 'bearer ', ' ', 'gw_', '\u007f', '\u001f'),
    fc.string({ maxLength: 4 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 5 }), (pieces) => {
      const text = pieces.join('');
      expect(given(text)).toBe(/^Bearer +([!-~]{1,512})$/i.exec(text)?.[1]);
    }),
  );
});

test('a second line that says something else makes it ambiguous; one that says the same does not', () => {
  expect(given('Bearer a', 'authorization', 'Bearer b')).toBeUndefined();
  expect(given('Bearer a', 'authorization', 'Bearer a')).toBe('a');
});
