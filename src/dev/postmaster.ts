import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** What a running server says about itself in `postmaster.pid`. */
export interface PostmasterFile {
  readonly pid: number;
  readonly port: number;
  /** `starting`, `ready`, `stopping`; empty while the server is still writing the file. */
  readonly status: string;
}

/** The file a server keeps in its data directory while it runs. */
export function postmasterPath(dataDirectory: string): string {
  return join(dataDirectory, 'postmaster.pid');
}

/** The parsed `postmaster.pid`, or null when there is none. */
export function readPostmasterFile(dataDirectory: string): PostmasterFile | null {
  let text: string;
  try {
    text = readFileSync(postmasterPath(dataDirectory), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const lines = text.split('\n');
  return { pid: Number(lines[0]), port: Number(lines[3]), status: lines[7]?.trim() ?? '' };
}

/**
 * Whether `pid` is the server of this data directory. A pid alone proves nothing: after a crash it may
 * belong to another program, or to a zombie. A server works inside its data directory; where that cannot
 * be seen (no Linux, or root without the right to trace), its command line names it.
 */
export function isPostmaster(pid: number, dataDirectory: string): boolean {
  if (!Number.isInteger(pid) || pid <= 1) return false;
  return worksIn(pid, dataDirectory) ?? commandLine(pid).includes(dataDirectory);
}

/** Whether `pid` is some Postgres, of whatever cluster. */
export function isAnyPostgres(pid: number): boolean {
  return Number.isInteger(pid) && pid > 1 && /\bpostgres\b/.test(commandLine(pid));
}

function worksIn(pid: number, directory: string): boolean | null {
  try {
    const [there, here] = [statSync(`/proc/${pid}/cwd`), statSync(directory)];
    return there.dev === here.dev && there.ino === here.ino;
  } catch {
    return null;
  }
}

function commandLine(pid: number): string {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  } catch {
    return ''; // no such process
  }
}

/** The last thing the server complained about in its log, or null. */
export function lastServerError(logPath: string): string | null {
  const lines = readFileSync(logPath, 'utf8').split('\n');
  const complaint = lines.findLast((line) => /\b(FATAL|PANIC|ERROR):/.test(line)) ?? lines.findLast(Boolean);
  return complaint?.replace(/^.*\b(?:FATAL|PANIC|ERROR):\s*/, '') ?? null;
}
