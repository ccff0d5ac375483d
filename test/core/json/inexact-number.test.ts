import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keepLongNumbers, mostLooked } from '../../../src/core/json/inexact-number.ts';
import { cpuMsOf } from '../../harness/measure/cpu-time.ts';

/** The path that is refused, or null, and what the value is written as then. */
function kept(json: string, isChat = true): readonly [path: string | null, written: string] {
  const value: unknown = JSON.parse(json);
  return [keepLongNumbers(value, Buffer.from(json), isChat), JSON.stringify(value)];
}
const pathIn = (json: string): string | null => kept(json)[0];

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
  ['{"messages":[1e400]}', 'messages[0]'],
  ['{"tools":[{},12345678901234567890]}', 'tools[1]'],
  ['{"messages":[{"content":["a",1e400]}]}', 'messages[0].content[1]'],
])('in %s the number that is read and lost is at %s', (json, path) => {
  expect(pathIn(json)).toBe(path);
});

test.each([
  '{"messages":[{"x":1},{"y":{"z\\"k":[0,12345678901234567890]}}]}',
  '{"messages":[{"content":[{"detail":1e+400}]},{"weight":-1E-400}]}',
  '{"messages":[{"tool_calls":[1e400,{"n":0.100000000000000012}]}]}',
  '{"tools":[{"function":{"parameters":{"a":[{},{}],"maximum":18446744073709551615}}}]}',
  '{"tools":[{"function":{"parameters":{"enum":[9007199254740993,9007199254740993.0,[1e400]]}}}]}',
  '{"response_format":{"type":"json_schema","json_schema":{"schema":{"const":9007199254740993}}}}',
  '{"tool_choice":{"n":123456789012345678901234567890}}',
])('what is passed on unread keeps its digits: %s', (json) => {
  expect(kept(json)).toEqual([null, json]);
});

test.each([
  ['{"limits":{"budget_usd_per_day":12345678901234567890}}', 'limits.budget_usd_per_day'],
  ['{"messages":[{"weight":1e400}]}', 'messages[0].weight'],
  ['{"limits":{"budget_usd_per_day":0.10000000000000001}}', null],
])('elsewhere than in a chat everything is read: %s', (json, path) => {
  expect(kept(json, false)).toEqual([path, JSON.stringify(JSON.parse(json))]);
});

test('a name that is spelled by numbers is that name, and one that begins so is another', () => {
  const spelled = [...'messages'].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join('');
  expect(pathIn(`{"${spelled}":[1e400]}`)).toBe('messages[0]');
  expect(kept('{"messages ":[1e400],"tools":{"0":1e400}}')).toEqual([
    null,
    '{"messages ":[1e400],"tools":{"0":1e400}}',
  ]);
});

test('long keys cost nothing however many numbers stand below them', () => {
  const deep = (key: string) =>
    `{"${key}":{"${key}":{"${key}":[${Array(mostLooked).fill('1e400').join(',')}]}}}`;
  const [short, long] = ['k', '\\n'.repeat(7_900)].map((key) => deep(key));
  const usualMs = cpuMsOf(() => kept(short ?? ''));
  expect(cpuMsOf(() => kept(long ?? ''))).toBeLessThan(10 * usualMs + 50);
});

test('of a key that is given twice the last one counts, whichever was long', () => {
  expect(kept('{"a":{"b":1e400,"b":2},"c":{"b":2,"b":1e400},"d":{"b":9007199254740993,"b":[1]}}')).toEqual([
    null,
    '{"a":{"b":2},"c":{"b":1e400},"d":{"b":[1]}}',
  ]);
});

test('one more than are looked at is refused by its place, exact or not', () => {
  const many = (count: number) => `{"tools":[{"a":[${Array(count).fill('1e20').join(',')}]}]}`;
  expect(pathIn(many(mostLooked))).toBeNull();
  expect(pathIn(many(mostLooked + 1))).toBe(`tools[0].a[${mostLooked}]`);
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
