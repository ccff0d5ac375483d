import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Family } from './attack-case.ts';
import type { BatchResult } from './batch.ts';
import { families, leastCases } from './families.ts';
import { baseSeed, batchesOf, fixtureSeeds, readSeeds, shareOfCases } from './seeds.ts';
import { Stage } from './stage.ts';

/** Cases of one test: few enough to be taken apart when one fails, enough that waiting for quiet does not cost more. */
const batchSize = 400;

const only = process.env['GW_ATTACK_SEED'];
const base = baseSeed();
let stage: Stage;
let cases = 0;

beforeAll(async () => {
  stage = await Stage.open();
  process.stdout.write(`seeds of base ${base}; once more: npm run test:attack -- --seed family:number\n`);
});

afterAll(async () => {
  await stage?.close();
});

async function expectNothing(family: Family, seeds: readonly number[]): Promise<BatchResult> {
  const { result, failures } = await stage.run(family, seeds);
  cases += seeds.length;
  expect(failures, failures.join('\n')).toEqual([]);
  return result;
}

if (only !== undefined) {
  test(`seed ${only}`, async () => {
    const seeds = readSeeds(only);
    const [first] = seeds;
    if (first === undefined) throw new Error(`${only} names no seed.`);
    await expectNothing(
      first.family,
      seeds.map(({ seed }) => seed),
    );
  });
} else {
  test.each(families.filter((family) => fixtureSeeds().some((one) => one.family === family)))(
    'what failed once, of $name',
    async (family) => {
      const seeds = fixtureSeeds().filter((one) => one.family === family);
      await expectNothing(
        family,
        seeds.map(({ seed }) => seed),
      );
    },
  );

  describe.each(families)('$name', (family) => {
    test.each(
      batchesOf(family, base, batchSize).map((seeds) => ({ seeds, from: seeds[0], to: seeds.at(-1) })),
    )('seeds $from to $to', async ({ seeds }) => void (await expectNothing(family, seeds)));
  });

  const least = Math.floor(leastCases * shareOfCases());
  test(`at least ${least} cases were run`, () => {
    stage.report();
    process.stdout.write(`${cases} cases\n`);
    expect(cases).toBeGreaterThanOrEqual(least);
  });
}
