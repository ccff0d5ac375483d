import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { spawn } from 'node:child_process';

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A child that ignores its stop signal for this long is killed. */
const STOP_TIMEOUT_MS = 30_000;

/** What a program said at its end; `code` is null after a signal or a failed start. */
export interface Ended {
  readonly code: number | null;
  /** What it wrote, where `stdio` asked for pipes; the reason where it could not be started. */
  readonly output: string;
}

/** Whether a child is expendable: npm, pip and Go take long to react, and what they leave half-made is never used. */
const running = new Map<ChildProcess, boolean>();
let stopped = false;

/** True once a stop signal came. */
export function isStopped(): boolean {
  return stopped;
}

/** From now on a stop signal goes to the running children, and this process ends only after them. */
export function handleStopSignals(): void {
  for (const name of stopSignals) process.on(name, () => stopChildren(name));
  process.on('disconnect', () => stopChildren('SIGTERM')); // the launcher above us was killed
  process.channel?.unref();
}

function stopChildren(signal: NodeJS.Signals): void {
  stopped = true;
  for (const [child, isExpendable] of running) {
    if (isExpendable && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    else child.kill(signal);
    setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS).unref();
  }
}

/** Runs a program to its end. With `detached` it is expendable: a stop signal kills it and its children at once. */
export function run(program: string, args: readonly string[], options: SpawnOptions = {}): Promise<Ended> {
  if (stopped) return Promise.resolve({ code: null, output: '' });
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: 'inherit', ...options });
    running.set(child, options.detached === true);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    const end = (code: number | null, error = '') => {
      running.delete(child);
      resolve({ code, output: output + error });
    };
    child.once('error', (error) => end(null, error.message));
    child.once('close', (code) => end(code));
  });
}

/** The same, with what it writes collected, and expendable. */
export function runQuietly(
  program: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<Ended> {
  return run(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true, ...options });
}
