import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * What is measured has a core to itself, with everybody else on the others: a process that is moved between cores beside
 * the load generator pays for caches that it left behind, in some slices and not in others. Linux only.
 */

/** Those that this process may use, as `Cpus_allowed_list` of proc_pid_status(5) has them: `0-2,5`. */
export function coresOf(list: string): readonly number[] {
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

function allowedCores(): readonly number[] {
  if (process.platform !== 'linux') return [];
  const status = readFileSync('/proc/self/status', 'utf8');
  return coresOf(/^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? '0');
}

const allowed = allowedCores();

/** Moves this process, and with it what it starts from now on, off the last core. */
export function leaveLastCore(): void {
  setCores(process.pid, allowed.slice(0, -1));
}

/** Moves a process with all its threads to the last core. */
export function onLastCore(pid: number): void {
  setCores(pid, allowed.slice(-1));
}

function setCores(pid: number, cores: readonly number[]): void {
  if (allowed.length < 2) return;
  try {
    execFileSync('taskset', ['-a', '-p', '-c', cores.join(','), String(pid)], { stdio: 'pipe' });
  } catch (error) {
    console.log(`Cores were not set apart: ${(error as Error).message.split('\n')[0]}`);
  }
}
