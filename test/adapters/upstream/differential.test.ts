/** Our reader of answers against Node's own and undici's: the same understanding, or a stricter one that is listed. */
import { expect, test } from 'vitest';
import { Random } from '../../harness/measure/random.ts';
import { answerBytes } from './answer-bytes.ts';
import { hostileAnswers } from './hostile-answers.ts';
import type { Comparison, KnownDifference, OtherReader } from './known-differences.ts';
import { closedByOurs, compare, refusedByOthers, refusedByOurs } from './known-differences.ts';
import type { OurReading, Reading } from './read-answer.ts';
import { readByNode, readByOurs } from './read-answer.ts';
import { readByUndici } from './read-by-undici.ts';

/** Hundreds of thousands have been run (GW_DIFFERENTIAL_CASES=500000); these are for every day. */
const cases = Number(process.env['GW_DIFFERENTIAL_CASES'] ?? 5_000);
const firstSeed = Number(process.env['GW_DIFFERENTIAL_SEED'] ?? 1);
/** A client and a connection for each answer: one in so many goes to undici. */
const undiciStride = 5;
const enough = 5;
const timeout = 60_000 + 10 * cases;

interface Difference {
  readonly seed: number | string;
  readonly problem: string;
  readonly bytes: string;
  readonly ours: Reading;
  readonly other: Reading;
}

function generated(seed: number): { readonly bytes: Buffer; readonly random: () => number } {
  const seeded = new Random(seed);
  const random = () => seeded.fraction();
  return { bytes: answerBytes(random), random };
}

function explanationsOf(bytes: Buffer, { explainedBy }: Comparison): KnownDifference[] {
  const text = bytes.toString('latin1');
  return explainedBy.filter(({ isIn }) => isIn(text));
}

/** The difference that nothing listed explains; null without one. */
function unexplained(
  seed: number | string,
  bytes: Buffer,
  ours: Reading,
  other: Reading,
  reader: OtherReader,
): Difference | null {
  const comparison = compare(ours, other, reader);
  const { problem } = comparison;
  if (problem === null || explanationsOf(bytes, comparison).length > 0) return null;
  return { seed, problem, bytes: bytes.toString('latin1'), ours, other };
}

/** With all that is known of it: refused for the same reason, and kept or not. */
const inFull = (reading: OurReading): string => JSON.stringify(reading);

test(`${cases} answers are understood as Node understands them, or more strictly, however they are cut`, {
  timeout,
}, () => {
  const differences: Difference[] = [];
  let [whole, kept] = [0, 0];
  for (let seed = firstSeed; seed < firstSeed + cases && differences.length < enough; seed += 1) {
    const { bytes, random } = generated(seed);
    const ours = readByOurs(bytes);
    if (ours.verdict === 'whole') whole += 1;
    if (ours.kept) kept += 1;
    const difference = unexplained(seed, bytes, ours, readByNode(bytes), 'node');
    if (difference !== null) differences.push(difference);
    const everyByte = Array.from({ length: bytes.length }, (_, at) => at);
    const someCuts = Array.from({ length: 3 }, () => Math.floor(random() * bytes.length)).sort(
      (a, b) => a - b,
    );
    const full = inFull(ours);
    for (const cuts of [everyByte, someCuts, ...everyByte.map((at) => [at])]) {
      const other = readByOurs(bytes, cuts);
      if (inFull(other) === full) continue;
      differences.push({ seed, problem: `cut at ${cuts}`, bytes: bytes.toString('latin1'), ours, other });
    }
  }
  expect(differences).toEqual([]);
  // Most are answers, and many keep their connection: a reader that refuses everything proves nothing.
  expect(whole).toBeGreaterThan(cases / 2);
  expect(kept).toBeGreaterThan(cases / 5);
});

test(`one in ${undiciStride} of them is understood as undici understands it, or more strictly`, {
  timeout,
}, async () => {
  const differences: Difference[] = [];
  for (let seed = firstSeed; seed < firstSeed + cases && differences.length < enough; seed += undiciStride) {
    const { bytes } = generated(seed);
    const difference = unexplained(seed, bytes, readByOurs(bytes), await readByUndici(bytes), 'undici');
    if (difference !== null) differences.push(difference);
  }
  expect(differences).toEqual([]);
});

test('so are the answers of the corpus, and each difference that is listed is shown by one of them', async () => {
  const differences: Difference[] = [];
  const shown = new Set<KnownDifference>();
  for (const { name, bytes } of hostileAnswers) {
    const ours = readByOurs(bytes);
    const others = [
      { reader: 'node', other: readByNode(bytes) },
      { reader: 'undici', other: await readByUndici(bytes) },
    ] as const;
    for (const { reader, other } of others) {
      const difference = unexplained(name, bytes, ours, other, reader);
      if (difference !== null) differences.push(difference);
      const explanations = explanationsOf(bytes, compare(ours, other, reader));
      // One that is needed: nothing else explains it.
      if (explanations.length === 1) shown.add(explanations[0] as KnownDifference);
    }
  }
  expect(differences.slice(0, enough)).toEqual([]);
  const listed = [...refusedByOurs, ...closedByOurs, ...refusedByOthers];
  expect(listed.filter((one) => !shown.has(one)).map(({ what }) => what)).toEqual([]);
});
