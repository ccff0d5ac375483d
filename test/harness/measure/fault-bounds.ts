import { expect, TestRunner } from 'vitest';
import { allowedMs, holdUps } from './held-up.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** What the test measured, in its own words: the figures of docs/faults.md. */
    figures?: string[];
  }
}

/** Prints what was measured, and keeps it for the scorecard. */
export function measured(text: string): void {
  process.stdout.write(`measured: ${text}\n`);
  const meta = TestRunner.getCurrentTest()?.meta;
  if (meta !== undefined) meta.figures = [...(meta.figures ?? []), text];
}

/** Prints what was measured, and fails where `expectInTime` does. */
export function expectWithin(what: string, measuredMs: number, boundMs: number): void {
  const here = measuredMs > boundMs ? `, ${allowedMs(boundMs, holdUps()).toFixed(0)} ms on this machine` : '';
  measured(`${what}: ${measuredMs.toFixed(1)} ms (bound ${boundMs} ms${here})`);
  expectInTime(measuredMs, boundMs, what);
}

/**
 * Fails beyond what `boundMs` becomes on this machine (`allowedMs`): what held this process up since the test before
 * ended is no fault of the gateway; what this process did itself is none of that.
 */
export function expectInTime(measuredMs: number, boundMs: number, what?: string): void {
  const held = holdUps();
  const { longestMs, lateness, crowding } = held;
  const why = `held up for ${longestMs.toFixed(0)} ms, lateness ${lateness.toFixed(2)}, crowding ${crowding.toFixed(1)}`;
  const said = `${what ?? 'in time'} (${why})`;
  expect(measuredMs, said).toBeLessThanOrEqual(allowedMs(boundMs, held));
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
