import { appendFileSync } from 'node:fs';
import type { TestContext } from 'vitest';
import type { Measurement } from '../harness/bench/micro.ts';

/** One thing whose time is taken. */
export interface Part {
  readonly name: string;
  /** Does it `times` times; what it returns is kept, so that no compiler leaves the work out. */
  readonly run: () => unknown;
  /** Default: once. */
  readonly times?: number;
}

/** Enough for V8 to compile what is hot. */
const measured = { time: 400, warmupTime: 200 };
/** Only that it runs. */
const smoke = { time: 0, iterations: 1, warmup: false };
const options = process.env['GW_BENCH_SMOKE'] === '1' ? smoke : measured;

/**
 * Takes the median time of each part and of the yardstick before it, so that a machine which slows down slows both.
 */
export async function compare(
  bench: TestContext['bench'],
  yardstick: Part,
  parts: readonly Part[],
): Promise<void> {
  for (const part of parts) {
    const floor = await medianMicroseconds(bench, yardstick);
    const microseconds = await medianMicroseconds(bench, part);
    const found = { yardstick: yardstick.name, name: part.name, microseconds, ratio: microseconds / floor };
    note(found);
  }
}

let kept: unknown;

async function medianMicroseconds(
  bench: TestContext['bench'],
  { name, run, times = 1 }: Part,
): Promise<number> {
  const result = await bench(name, () => {
    kept = run();
  }).run(options);
  if (kept === undefined) throw new Error(`${name} gives nothing.`);
  return (result.latency.p50 * 1_000) / times;
}

/** What `npm run bench:micro` reads: one line per part. */
function note(found: Measurement): void {
  const file = process.env['GW_BENCH_FILE'];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(found)}\n`);
}
