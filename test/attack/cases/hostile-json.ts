import type { Random } from '../../harness/measure/random.ts';

/** A grammar of JSON that is almost what it should be: types swapped, counts and depths beyond all reason. */

/** No list is longer: an answer may have 16 MiB. */
const mostTextBytes = 12 * 1024 * 1024;

/** Few answers are huge: a hundred thousand of something is asked for once in some hundred cases. */
export function countOf(random: Random, most: number): number {
  return random.weighted<() => number>([
    [50, () => random.int(0, 3)],
    [30, () => random.int(0, 40)],
    [15, () => random.size(1, 2_000)],
    [2, () => random.size(1, most)],
  ])();
}

export const oddText = (random: Random): string =>
  random.weighted<() => string>([
    [6, () => random.pick(['', 'a', 'Namaste', 'stop', 'assistant', 'null', '0', 'true'])],
    [2, () => 'x'.repeat(random.size(1, 20_000))],
    [
      2,
      () =>
        random.pick([
          '\u0000',
          '\ud800',
          '\u2028\u2029',
          '\r\n\r\n',
          'data: [DONE]\n\n',
          '\ufeff',
          '"\\',
          '🙂',
        ]),
    ],
    [1, () => random.pick(['__proto__', 'constructor', 'toString', 'gateway', 'choices', 'usage'])],
  ])();

/** Numbers as text, since JSON's own writer knows no 1e400. */
export const oddNumber = (random: Random): string =>
  random.pick([
    '0',
    '-0',
    '1',
    '-1',
    '1.5',
    '1e3',
    '1e400',
    '-1e400',
    '12345678901234567890',
    '9007199254740993',
    '1e-400',
    '4294967296',
    '0.1',
  ]);

/** Any JSON value, as text. */
export function anyValue(random: Random, depth: number): string {
  const leaf = depth <= 0;
  return random.weighted<() => string>([
    [3, () => JSON.stringify(oddText(random))],
    [3, () => oddNumber(random)],
    [2, () => random.pick(['null', 'true', 'false'])],
    [leaf ? 0 : 2, () => list(random.int(0, 4), () => anyValue(random, depth - 1))],
    [
      leaf ? 0 : 2,
      () => {
        const fields = Array.from({ length: random.int(0, 4) }, () => {
          return `${JSON.stringify(oddText(random))}:${anyValue(random, depth - 1)}`;
        });
        return `{${fields.join(',')}}`;
      },
    ],
    [0.3, () => nested(random.size(1, 3_000))],
    [0.1, () => `[${'0,'.repeat(random.size(1, 30_000))}0]`],
  ])();
}

export function nested(depth: number): string {
  return '['.repeat(depth) + ']'.repeat(depth);
}

export function list(count: number, item: () => string): string {
  if (count <= 64) return `[${Array.from({ length: count }, item).join(',')}]`;
  // Beyond some dozens the items repeat: what matters is how many they are.
  const few = Array.from({ length: 8 }, item).join(',');
  const times = Math.min(Math.ceil(count / 8), Math.floor(mostTextBytes / few.length));
  return `[${`${few},`.repeat(Math.max(0, times - 1))}${few}]`;
}

/** One field: mostly as it should be, now and then of another type, missing, or there twice. */
export function field(random: Random, name: string, good: () => string, oddity: number): string[] {
  if (!random.chance(oddity)) return [`"${name}":${good()}`];
  return random.weighted<() => string[]>([
    [6, () => [`"${name}":${anyValue(random, 3)}`]],
    [2, () => []],
    [1, () => [`"${name}":${good()}`, `"${name}":${anyValue(random, 2)}`]],
    [1, () => [`"${name}":null`]],
  ])();
}

export function object(...fields: readonly (readonly string[])[]): string {
  return `{${fields.flat().join(',')}}`;
}
