import { expect, test } from 'vitest';
import { shownFields } from '../../../src/core/request/dropped-fields.ts';

test('plain names are shown as they are', () => {
  const names = ['seed', 'messages[].name', 'tools[].function.strict'];
  expect(shownFields(names)).toEqual(names);
});

test('a name that may be content is not shown', () => {
  const names = ['messages[].my card is 4111', 'messages[].x'.padEnd(100, 'x'), 'messages[].\n', 'seed'];
  expect(shownFields(names)).toEqual(['(other)', 'seed']);
});

test('of ever so many names a few are shown', () => {
  expect(shownFields(Array.from({ length: 20_000 }, (_, index) => `messages[].k${index}`))).toHaveLength(32);
});
