import { patient } from './crowding.ts';

/** Below the limit of a test, so that the wait that did not end is named. */
const defaultLimitMs = 45_000;
const pauseMs = 10;

/**
 * Asks again until `probe` is satisfied; for facts that follow an answer rather than precede it. The limit is one against
 * hanging, and longer on a machine that is busy with others. `restMs` lies between two questions.
 */
export async function eventually<T>(
  probe: () => Promise<T | undefined>,
  limitMs = defaultLimitMs,
  restMs = pauseMs,
): Promise<T> {
  const waitMs = patient(limitMs);
  const deadline = performance.now() + waitMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined) return value;
    if (performance.now() > deadline) throw new Error(`not so after ${waitMs.toFixed(0)} ms`);
    await new Promise((resolve) => setTimeout(resolve, restMs));
  }
}

/**
 * Resolves with a counter's value once it has not moved for `stillMs`, counted in looks at it: while the machine stands
 * still, nobody looks.
 */
export async function untilStill(read: () => number, stillMs = 400): Promise<number> {
  let seen = read();
  let stillLooks = 0;
  return eventually(() => {
    const value = read();
    stillLooks = value === seen ? stillLooks + 1 : 0;
    seen = value;
    return Promise.resolve(stillLooks * pauseMs > stillMs ? value : undefined);
  });
}
