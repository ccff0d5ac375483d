import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ExactReader, parseExactly, TooManyNumbersError } from '../../../src/core/json/exact-json.ts';
import { isKeptNumber } from '../../../src/core/json/kept-number.ts';
import { cpuMsOf } from '../../harness/measure/cpu-time.ts';

const numbers = [
  '0',
  '-1.5',
  '1e3',
  '12345678901234567890',
  '1e400',
  '-1E-400',
  '0.10000000000000001',
  '1e300',
];
const keys = ['a', 'b', '0', 'length', '__proto__', 'constructor', 'rawJSON', 'q"\\', 'é\u2028', ''];

/** JSON texts with numbers of all kinds, and keys that mean something elsewhere. */
const texts = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    fc.constantFrom(...numbers, 'null', '"12345678901234567890"', '"\\"1e400"'),
    fc.array(tie('value'), { maxLength: 4 }).map((parts) => `[${parts.join(' , ')}]`),
    fc
      .uniqueArray(fc.tuple(fc.constantFrom(...keys), tie('value')), {
        maxLength: 4,
        selector: ([key]) => key,
      })
      .map((members) => `{${members.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`),
  ),
})).value;

/** What the machine itself makes of it when asked for each value: the slow way. */
function bySource(text: string): unknown {
  type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
  const reviver: Reviver = (_key, value, { source }) =>
    typeof value === 'number' &&
    source !== undefined &&
    ['12345678901234567890', '1e400', '-1E-400', '0.10000000000000001'].includes(source)
      ? JSON.rawJSON(source)
      : value;
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
}

test('whatever the text, each number is written again as it came, and nothing else is touched', () => {
  fc.assert(
    fc.property(texts, (text) => {
      expect(JSON.stringify(parseExactly(text))).toBe(JSON.stringify(bySource(text)));
    }),
    { numRuns: 3_000 },
  );
});

test('what holds no such number is what JSON.parse makes of it', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      expect(parseExactly(text)).toStrictEqual(JSON.parse(text));
    }),
  );
});

test.each([
  ['{"a":{"n":1e400},"a":{"n":2}}', '{"a":{"n":2}}'],
  ['{"a":{"n":1e400},"a":[1]}', '{"a":[1]}'],
  ['{"a":{"length":1e400},"a":[]}', '{"a":[]}'],
  ['{"a":{"__proto__":{"x":1e400}},"a":{}}', '{"a":{}}'],
  ['{"a":{"constructor":{"length":1.00000000000000000001}},"a":{}}', '{"a":{}}'],
  ['{"a":[[1e400]],"a":1e400}', '{"a":1e400}'],
  ['{"a":1e400,"a":1e401}', '{"a":1e401}'],
  ['{"a":1e400,"a":{"rawJSON":1e400}}', '{"a":{"rawJSON":1e400}}'],
])('of a key given twice, the last one counts: %s', (text, expected) => {
  expect(JSON.stringify(parseExactly(text))).toBe(expected);
  expect(Object.keys(Object.prototype)).toEqual([]);
});

test('only numbers that are kept as written count as kept', () => {
  const { a, b, c } = parseExactly('{"a":1e400,"b":1,"c":{"rawJSON":"1"}}') as Record<string, unknown>;
  expect([a, b, c, null, '1'].map(isKeptNumber)).toEqual([true, false, false, false, false]);
});

test('text that is no JSON is refused as JSON.parse does', () => {
  expect(() => parseExactly('{"a":12345678901234567890')).toThrow(SyntaxError);
});

const between = (2n ** 53n + 1n) * 5n ** 400n;

test.each<[what: string, number: string]>([
  ['between two doubles', `${between}e-400`],
  ['integers', '1'.repeat(335)],
  ['fractions', `0.5${'0'.repeat(332)}`],
  ['exponents', `1e${'0'.repeat(332)}1`],
  ['negative ones', `-${'1'.repeat(334)}`],
])('more digits in long numbers than anybody means are not looked at: %s', (_what, number) => {
  const many = (length: number): string => `[${Array(length).fill(number).join(',')}]`;
  const count = Math.floor(1_000_000 / number.length);
  expect(() => parseExactly(many(count - 10))).not.toThrow();
  expect(() => parseExactly(many(count + 100))).toThrow(TooManyNumbersError);
  const text = many(40_000);
  const bytes = Buffer.from(text);
  const readMs = cpuMsOf(() => JSON.parse(text));
  const refusedMs = cpuMsOf(() =>
    expect(() => new ExactReader().parse(text, bytes)).toThrow(TooManyNumbersError),
  );
  // Twice the parse and more, when all are read.
  expect(refusedMs).toBeLessThan(Math.max(readMs, 25));
});

test('digits in strings are not those of numbers', () => {
  const text = JSON.stringify(Array(20).fill('1'.repeat(500_000)));
  expect(JSON.stringify(parseExactly(text)) === text).toBe(true);
});

test('more long numbers than anybody means are not read', () => {
  const many = (count: number): string => `[${Array(count).fill('0.12345678901234567').join(',')}]`;
  expect(JSON.stringify(parseExactly(many(50_000)))).toBe(many(50_000));
  expect(() => parseExactly(many(50_001))).toThrow(TooManyNumbersError);
});
