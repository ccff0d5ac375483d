import { readFileSync } from 'node:fs';

const nanosecondsPerMs = 1e6;

/**
 * Milliseconds for which the main thread of a process has been ready to run, and had no core: the second number of the
 * kernel's /proc/PID/schedstat. Linux only.
 */
export function coreWaitMs(pid: number): number {
  const [, waited = 'none'] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ');
  return Number(waited) / nanosecondsPerMs;
}
