import { endAfter, isByBug, listenForStop } from '../stop-signals.ts';
import { CommandError } from './exit-codes.ts';

export interface Running {
  close(): Promise<void>;
  /** How long `close` may take. */
  readonly stopLimitMs: number;
}

/** Runs until a signal; a second one hurries the stop. Throws CommandError after what nobody thought of. */
export async function runUntilSignal(start: () => Promise<Running>): Promise<void> {
  let running: Running | null = null;
  const { promise: stopped, resolve, reject } = Promise.withResolvers<void>();
  const stop = new AbortController();
  stop.signal.addEventListener('abort', () => {
    const byBug = isByBug(stop.signal);
    endAfter(running?.stopLimitMs ?? 0);
    if (running === null) process.exit(byBug ? 1 : 0);
    running.close().then(() => {
      if (byBug) reject(new CommandError('failed', 'ended by an uncaught exception'));
      else resolve();
    }, reject);
  });
  listenForStop(stop, {
    signals: ['SIGTERM', 'SIGINT'],
    sameStopMs: 0,
    // The first call tells of its failure.
    onFurther: () => running?.close().catch(() => undefined),
  });
  running = await start();
  await stopped;
}
