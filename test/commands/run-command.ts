import { join } from 'node:path';
import { runNode } from '../platform/child.ts';

const main = join(import.meta.dirname, '../../dist/main.js');

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command of the built binary to its end, with these settings and none of this process's. */
export function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  return runNode([main, ...args], { PATH: process.env['PATH'] ?? '', DATABASE_URL: '', ...env }).ended();
}
