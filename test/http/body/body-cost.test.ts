import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { tallyJson } from '../../../src/core/json/json-tally.ts';
import { bodyCost } from '../../../src/http/body/body-cost.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const unbounded = {
  values: Number.POSITIVE_INFINITY,
  depth: Number.POSITIVE_INFINITY,
  keys: Number.POSITIVE_INFINITY,
  longDigits: Number.POSITIVE_INFINITY,
};
const many = 30_000;

const list = (item: (index: number) => string): string =>
  `[${Array.from({ length: many }, (_, index) => item(index)).join(',')}]`;

/** Heap of the parsed text and of the text written for the vendor, which is what lasts until the answer is out. */
function heapOf(text: string): number {
  const body = Buffer.from(text);
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const kept: unknown[] = [JSON.parse(body.toString('utf8'))];
  kept.push(JSON.stringify(kept[0]));
  collectGarbage();
  const after = process.memoryUsage().heapUsed;
  expect(kept).toHaveLength(2);
  return after - before;
}

test.each<[string, string]>([
  ['empty objects', list(() => '{}')],
  ['empty arrays', list(() => '[]')],
  ['arrays in arrays', list(() => '[[]]')],
  ['arrays of a number', list(() => '[1.5]')],
  ['arrays of mixed values', list(() => '[1.5,""]')],
  ['objects of one key that all share', list(() => '{"a":1}')],
  ['objects of one key that no other has', list((index) => `{"k${index}":1.5}`)],
  ['objects of two keys that no other has', list((index) => `{"k${index}":1,"l${index}":2}`)],
  ['objects in objects of their own keys', list((index) => `{"k${index}":{}}`)],
  ['keys that look like places of an array', list((index) => `{"${(index * 7919) % 100_000}":1}`)],
  ['keys that look like places of a large array', list((index) => `{"${4_000_000_000 + index}":1}`)],
  ['one object of many keys', `{${list((index) => `"k${index}":1`).slice(1, -1)}}`],
  ['whole numbers', list(() => '1')],
  ['broken numbers', list(() => '1.5')],
  ['large numbers, which are longer as they are written', list(() => '1e20')],
  ['numbers among texts', list(() => '1.5,""')],
  ['empty texts', list(() => '""')],
  ['short texts', list((index) => JSON.stringify(index.toString(36)))],
  ['longer texts', list((index) => JSON.stringify(`${index}`.padStart(40, 'x')))],
  ['short texts beyond ASCII', list((index) => JSON.stringify(`\u0101${index}`))],
  ['escapes', list((index) => `"\\u0101${index}"`)],
  ['one text', JSON.stringify('a'.repeat(3_000_000))],
  ['one text with one character beyond Latin 1', JSON.stringify(`\u0101${'a'.repeat(3_000_000)}`)],
  ['one text with one such character escaped', `"\\u0101${'a'.repeat(3_000_000)}"`],
  ['null', list(() => 'null')],
])('a body is charged no less than it costs: %s', (_name, text) => {
  const body = Buffer.from(text);
  const tally = tallyJson(body, unbounded);
  if (typeof tally === 'string') throw new Error('Nothing is beyond no bounds.');
  const cost = bodyCost(body, tally.values, text.includes('\\u'));
  // What the process compiles meanwhile is no cost of the body.
  const heap = Math.min(heapOf(text), heapOf(text), heapOf(text));
  expect(cost).toBeGreaterThanOrEqual(heap);
});

test('prose is charged no more than it costs, with room for the request it comes with', () => {
  const text = JSON.stringify({ messages: [{ role: 'user', content: 'some words '.repeat(100_000) }] });
  expect(bodyCost(Buffer.from(text), 6, false)).toBeLessThan(2.1 * text.length);
});
