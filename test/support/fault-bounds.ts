import { expect, TestRunner } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** What the test measured, in its own words: the figures of docs/faults.md. */
    figures?: string[];
  }
}

/** Bounds hold for one replica on a machine of its own; a shared one with two cores gets three times as much. */
const slack = 3;

/** Prints what was measured, and keeps it for the scorecard. */
export function measured(text: string): void {
  process.stdout.write(`measured: ${text}\n`);
  const meta = TestRunner.getCurrentTest()?.meta;
  if (meta !== undefined) meta.figures = [...(meta.figures ?? []), text];
}

/** Prints what was measured and fails beyond `slack` times the bound. */
export function expectWithin(what: string, measuredMs: number, boundMs: number): void {
  measured(`${what}: ${measuredMs.toFixed(1)} ms (bound ${boundMs} ms)`);
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
