import fc from 'fast-check';
import { expect, test } from 'vitest';
import { escapeUnprintable } from '../../../src/core/json/unprintable.ts';

test.each([
  ['a new line to terminals that know C1', '\u0085'],
  ['the beginning of a sequence, in one character', '\u009b31m'],
  ['a separator of lines', '\u2028'],
  ['a mark that turns the line around', '\u202e'],
  ['a character that is not seen, of two units', '\u{e0041}'],
])('%s is spelled out, and reads as what it was', (_name, text) => {
  const json = escapeUnprintable(JSON.stringify({ text }));
  expect(json).toMatch(/^[\x20-\x7e]+$/);
  expect(JSON.parse(json)).toEqual({ text });
});

test('any JSON says the same, and letters of all scripts stay as they are', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      expect(JSON.parse(escapeUnprintable(json))).toEqual(JSON.parse(json));
    }),
  );
  expect(escapeUnprintable('"模型 ü हिन्दी 😀"')).toBe('"模型 ü हिन्दी 😀"');
});
