import { expect, test } from 'vitest';
import { shownText } from '../../src/commands/output.ts';

test.each([
  ['Grüße, ada@example.com', 'Grüße, ada@example.com'],
  ['a\rb\nc', 'a\\u{d}b\\u{a}c'],
  ['\u001b[2J', '\\u{1b}[2J'],
  ['\u202egnp.exe', '\\u{202e}gnp.exe'],
  ['a\u2028b\u0085c', 'a\\u{2028}b\\u{85}c'],
])('text of users cannot move the cursor of an operator: %j', (text, shown) => {
  expect(shownText(text)).toBe(shown);
});
