import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Does `work` once the schema is there, and again `everyMs` after each end of it, until the signal. What fails is for
 * `work` to tell; it does not reject.
 */
export function keepDoing(
  schemaReady: Promise<void>,
  everyMs: number,
  signal: AbortSignal,
  work: () => Promise<void>,
): void {
  const keep = async (): Promise<void> => {
    await schemaReady;
    while (!signal.aborted) {
      await work();
      await sleep(everyMs, undefined, { signal, ref: false });
    }
  };
  // Both waits end only by the signal, at shutdown.
  keep().catch(() => undefined);
}
