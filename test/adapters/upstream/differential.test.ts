/** Our reader of answers against Node's own: the same understanding, or a stricter one. */
import { expect, test } from 'vitest';
import { Random } from '../../harness/measure/random.ts';
import { answerBytes } from './answer-bytes.ts';
import type { Reading } from './read-answer.ts';
import { readByNode, readByOurs } from './read-answer.ts';

/** A million have been run (GW_DIFFERENTIAL_CASES=1000000); these are for every day. */

const cases = Number(process.env['GW_DIFFERENTIAL_CASES'] ?? 5_000);
const firstSeed = Number(process.env['GW_DIFFERENTIAL_SEED'] ?? 1);

/** Order of fields aside, and white space behind values, of which Node leaves some. */
function meaning({ verdict, status, fields, body }: Reading): string {
  return JSON.stringify([verdict, status, fields.map((text) => text.trimEnd()).sort(), body]);
}

interface Difference {
  readonly seed: number;
  readonly bytes: string;
  readonly ours: Reading;
  readonly other: Reading;
}

test(`${cases} answers are understood as Node understands them, or not at all, however they are cut`, {
  timeout: 60_000 + 10 * cases,
}, () => {
  const differences: Difference[] = [];
  let whole = 0;
  for (let seed = firstSeed; seed < firstSeed + cases && differences.length < 5; seed += 1) {
    const seeded = new Random(seed);
    const random = () => seeded.fraction();
    const bytes = answerBytes(random);
    const ours = readByOurs(bytes);
    const differ = (other: Reading): void => {
      differences.push({ seed, bytes: bytes.toString('latin1'), ours, other });
    };
    const nodes = readByNode(bytes);
    if (ours.verdict === 'whole') {
      whole += 1;
      if (meaning(ours) !== meaning(nodes)) differ(nodes);
    }
    const everyByte = Array.from({ length: bytes.length }, (_, at) => at);
    const someCuts = Array.from({ length: 3 }, () => Math.floor(random() * bytes.length)).sort(
      (a, b) => a - b,
    );
    for (const cuts of [everyByte, someCuts, ...everyByte.map((at) => [at])]) {
      const cut = readByOurs(bytes, cuts);
      if (meaning(cut) !== meaning(ours)) differ(cut);
    }
  }
  expect(differences).toEqual([]);
  // Most are answers: a reader that refuses everything proves nothing.
  expect(whole).toBeGreaterThan(cases / 2);
});
