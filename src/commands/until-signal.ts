import { endAfter } from '../gateway-process.ts';
import { CommandError } from './exit-codes.ts';

export interface Running {
  close(): Promise<void>;
  /** How long `close` may take. */
  readonly stopLimitMs: number;
}

/** Runs until a signal; a second one hurries the stop. Throws CommandError after what nobody thought of. */
export async function runUntilSignal(start: () => Promise<Running>): Promise<void> {
  let running: Running | null = null;
  const stopped = new Promise<void>((resolve, reject) => {
    const stop = (bug: Error | null): void => {
      endAfter(running?.stopLimitMs ?? 0);
      if (running === null) process.exit(bug === null ? 0 : 1);
      const end = (failure: Error | null): void => (failure === null ? resolve() : reject(failure));
      running.close().then(
        () => end(bug),
        (error: Error) => end(error),
      );
    };
    process.on('SIGTERM', () => stop(null));
    process.on('SIGINT', () => stop(null));
    // A state nobody thought of is not one to go on from: write what is left, then end.
    process.on('uncaughtException', (error) => {
      process.stderr.write(`uncaught: ${error.stack}\n`);
      stop(new CommandError('failed', 'ended by an uncaught exception'));
    });
  });
  running = await start();
  await stopped;
}
