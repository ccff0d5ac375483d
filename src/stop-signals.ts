/** How a process that serves hears that it has to stop, and that it does. */

/** After a stop signal and the drain, whatever still hangs is left behind. */
export const stopGraceMs = 15_000;

export interface StopRules {
  readonly signals: readonly NodeJS.Signals[];
  /** What comes so soon after the first signal is the same one, milliseconds: launchers hand a key press on. */
  readonly sameStopMs: number;
  /** A further stop while the first is under way. */
  readonly onFurther: (byBug: boolean) => void;
}

/** The reason of a stop that nobody asked for. Its own: whatever is thrown may be called AbortError, or be no error. */
class UncaughtError extends Error {}

/**
 * The first stop signal aborts `stop`, and so does what nobody thought of: that is not a state to go on from. It is
 * told on stderr, see `isByBug`.
 */
export function listenForStop(stop: AbortController, { signals, sameStopMs, onFurther }: StopRules): void {
  let stoppedAtMs: number | null = null;
  const hear = (bug: UncaughtError | null): void => {
    const nowMs = performance.now();
    if (stoppedAtMs === null) {
      stoppedAtMs = nowMs;
      stop.abort(bug ?? undefined);
    } else if (bug !== null || nowMs - stoppedAtMs >= sameStopMs) onFurther(bug !== null);
  };
  for (const name of signals) process.on(name, () => hear(null));
  process.on('uncaughtException', (thrown: unknown) => {
    process.stderr.write(`uncaught: ${thrown instanceof Error ? thrown.stack : String(thrown)}\n`);
    hear(new UncaughtError('Nobody caught it.', { cause: thrown }));
  });
}

/** Whether the stop began with what nobody thought of. */
export function isByBug({ reason }: AbortSignal): boolean {
  return reason instanceof UncaughtError;
}

/** Called when the stop has begun, which may take so long: the process ends in any case. */
export function endAfter(stopLimitMs: number): void {
  setTimeout(() => process.exit(1), stopLimitMs + stopGraceMs).unref();
}
