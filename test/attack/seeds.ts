import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { seedIn } from '../harness/measure/random.ts';
import type { Family } from './attack-case.ts';
import { families } from './families.ts';

const fixtureFolder = join(import.meta.dirname, 'fixtures');
const seedText = /^([a-z-]+):(\d+)(?:-(\d+))?$/;

const fixtureSchema = z.array(z.strictObject({ seed: z.string().regex(seedText), found: z.string() }));

export interface Seed {
  readonly family: Family;
  readonly seed: number;
}

/** `vendor-json:4711`, or `vendor-json:4711-4720` → the family and its seeds. Throws for a family that does not exist. */
export function readSeeds(text: string): Seed[] {
  const [, name = '', digits = '', last = digits] = seedText.exec(text) ?? [];
  const family = families.find((one) => one.name === name);
  if (family === undefined)
    throw new Error(
      `${text} is no seed: family:number, one of ${families.map((one) => one.name).join(', ')}`,
    );
  const count = Number(last) - Number(digits) + 1;
  return Array.from({ length: count }, (_, index) => ({ family, seed: Number(digits) + index }));
}

/** Seeds that failed once, of all files below fixtures/. */
export function fixtureSeeds(): Seed[] {
  return readdirSync(fixtureFolder)
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) => fixtureSchema.parse(parse(readFileSync(join(fixtureFolder, file), 'utf8')) ?? []))
    .flatMap(({ seed }) => readSeeds(seed));
}

/** The line that makes a regression of a failure. */
export function fixtureLine(family: Family, seed: number, problem: string): string {
  return `- { seed: '${family.name}:${seed}', found: ${JSON.stringify(problem.slice(0, 160))} }`;
}

/** Every base gives other cases. */
const seedsPerBase = 1_000_000;
/** Seeds of a base below this have 32 bits. */
const bases = 4_000;

export function baseSeed(): number {
  return seedIn('GW_ATTACK_BASE', bases);
}

/** The part of each family that is run: 1, unless a change is tried out. */
export function shareOfCases(): number {
  return Number(process.env['GW_ATTACK_SHARE'] ?? 1);
}

/** A family's seeds in batches of at most `size`. */
export function batchesOf(family: Family, base: number, size: number): number[][] {
  const seeds = Array.from(
    { length: Math.ceil(family.count * shareOfCases()) },
    (_, index) => base * seedsPerBase + index,
  );
  const batches: number[][] = [];
  for (let at = 0; at < seeds.length; at += size) batches.push(seeds.slice(at, at + size));
  return batches;
}
