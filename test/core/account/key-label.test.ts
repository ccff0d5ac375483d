import { expect, test } from 'vitest';
import { canBeNamed } from '../../../src/core/account/account-requests.ts';

test.each<[label: string, named: boolean]>([
  ['gpu-box', true],
  ['my box', true],
  ['', false],
  [' ', false],
  ['\u00a0\t', false],
  ['a/b', false],
  ['a:b', false],
])('an override can name a key by the label %j: %s', (label, named) => {
  expect(canBeNamed(label)).toBe(named);
});
