import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inexactNumberPath } from '../../../src/core/json/inexact-number.ts';

const pathIn = (json: string): string | null => inexactNumberPath(Buffer.from(json));

test.each<[json: string, path: string | null]>([
  ['{"a":12345678901234567890}', 'a'],
  ['{"a":1e400}', 'a'],
  ['{"a":-1e-400}', 'a'],
  ['{"a":9007199254740993}', 'a'],
  ['{"a":9007199254740992}', null],
  ['{"a":1.00000000000000001}', 'a'],
  ['{"a":0.1000000000000000}', null],
  ['{"a":0.69999999999999996}', null],
  ['{"a":0.10000000000000001}', null],
  ['{"a":0.80000001192092896}', null],
  ['{"a":-1.0000000000000002e-7}', null],
  ['{"a":0.100000000000000012}', 'a'],
  ['{"a":9007199254740993.0}', 'a'],
  ['{"a":9.007199254740993e15}', 'a'],
  ['{"a":1.2345678901234567e-320}', 'a'],
  ['{"a":1e300}', null],
  ['{"a":100000000000000000000}', null],
  ['{"a":0.30000000000000004}', null],
  ['{"a":"12345678901234567890, 1e400"}', null],
  ['{"seed":9223372036854775807}', null],
  ['{"messages":[{"x":1},{"y":{"z\\"k":[0,12345678901234567890]}}]}', 'messages[1].y.z"k[1]'],
  [
    '{"tools":[{"function":{"parameters":{"a":[{},{}],"maximum":18446744073709551615}}}]}',
    'tools[0].function.parameters.maximum',
  ],
])('in %s the number that is lost is at %s', (json, path) => {
  expect(pathIn(json)).toBe(path);
});

test('wherever it begins, a long number is found', () => {
  for (let lead = 0; lead < 64; lead += 1) {
    const name = 'x'.repeat(lead);
    expect(pathIn(`{"${name}":9007199254740993}`)).toBe(name === '' ? '' : name);
    expect(pathIn(`{"${name}":0.1234567890123456789}`)).not.toBeNull();
  }
});

test('what this process writes itself is never lost', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      expect(pathIn(JSON.stringify(value))).toBeNull();
    }),
    { numRuns: 1_000 },
  );
});
