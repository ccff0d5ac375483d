/** What becomes of each answer of the corpus, in one piece, byte by byte and cut in two anywhere. */
import { expect, test } from 'vitest';
import { hostileAnswers } from './hostile-answers.ts';
import type { OurReading } from './read-answer.ts';
import { readByOurs } from './read-answer.ts';

/** Longer ones are cut everywhere near their ends, where lines begin and end, and here and there between. */
const shortBytes = 2_048;
const nearBytes = 256;
const strideBytes = 509;

function placesOf(length: number): number[] {
  return Array.from({ length }, (_, at) => at).filter(
    (at) => length <= shortBytes || at < nearBytes || at > length - nearBytes || at % strideBytes === 0,
  );
}

/** In the words of the file. */
function outcomeOf({ verdict, fault, status, body, kept }: OurReading): object {
  return verdict === 'whole' ? { verdict, status, body, kept } : { verdict: fault ?? verdict };
}

test.each(hostileAnswers)('$name: $verdict', ({ name: _name, bytes, ...expected }) => {
  expect(outcomeOf(readByOurs(bytes))).toEqual(expected);
  const everyByte = Array.from({ length: bytes.length }, (_, at) => at);
  expect(outcomeOf(readByOurs(bytes, everyByte)), 'byte by byte').toEqual(expected);
  const wanted = JSON.stringify(expected);
  const differing = placesOf(bytes.length).filter(
    (at) => JSON.stringify(outcomeOf(readByOurs(bytes, [at]))) !== wanted,
  );
  expect(differing, 'places at which it is cut in two').toEqual([]);
});
