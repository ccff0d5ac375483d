import { expect } from 'vitest';

/** Bounds hold for one replica on a machine of its own; a shared one with two cores gets three times as much. */
const slack = 3;

/** Prints what was measured and fails beyond `slack` times the bound. */
export function expectWithin(what: string, measuredMs: number, boundMs: number): void {
  process.stdout.write(`measured: ${what}: ${measuredMs.toFixed(1)} ms (bound ${boundMs} ms)\n`);
  expect(measuredMs, what).toBeLessThanOrEqual(boundMs * slack);
}

/** Milliseconds that `work` took. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return performance.now() - startedAtMs;
}

/** The middle value: one slow turn of a busy machine says nothing about a bound. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
