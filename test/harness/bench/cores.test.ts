import { expect, test } from 'vitest';
import { coresOf } from './cores.ts';

test.each<[string, number[]]>([
  ['0', [0]],
  ['0-3', [0, 1, 2, 3]],
  ['2,5-6', [2, 5, 6]],
])('of the list %s the cores are %j', (list, cores) => {
  expect(coresOf(list)).toEqual(cores);
});
