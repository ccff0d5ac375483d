import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { StageError } from '../stage/project.ts';

/**
 * What is measured has the last core to itself, with everybody else on the others: a process that is moved between cores
 * beside the load generator pays for caches that it left behind, in some slices and not in others.
 */
const last = cpus().length - 1;

/** Moves this process, and with it what it starts from now on, off the last core. Linux only; nothing on one core. */
export function leaveLastCore(): void {
  if (last > 0) setCores(process.pid, `0-${last - 1}`);
}

/** Moves a process with all its threads to the last core. */
export function onLastCore(pid: number): void {
  if (last > 0) setCores(pid, String(last));
}

function setCores(pid: number, cores: string): void {
  try {
    execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cores, String(pid)], { stdio: 'pipe' });
  } catch (error) {
    throw new StageError(`taskset (of util-linux) could not choose cores: ${(error as Error).message}`);
  }
}
