import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { exitCodes } from '../../src/commands/exit-codes.ts';
import { eventually } from '../harness/measure/eventually.ts';
import type { TestDatabase } from '../harness/servers/postgres.ts';
import { runNode } from '../platform/child.ts';

const main = join(import.meta.dirname, '../../dist/main.js');

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const settings = /^(?:GW_|OTEL_|DATABASE_|REDIS_|PORT$)/;
const noSettings = Object.fromEntries(
  Object.keys(process.env)
    .filter((name) => settings.test(name))
    .map((name) => [name, undefined]),
);

/** Runs a command of the built binary to its end, with these settings and none of this process's. */
export function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  return runNode([main, ...args], { ...noSettings, DATABASE_URL: '', ...env }).ended();
}

/** The same on this database, again where it was late, as the exit code asks for: on a busy machine it may be. */
export function runOnDatabase(database: Pick<TestDatabase, 'url'>, args: readonly string[]): Promise<Ended> {
  return eventually(async () => {
    const ended = await runCommand(args, { DATABASE_URL: database.url });
    return ended.code === exitCodes.away ? undefined : ended;
  });
}

/** Runs a line of bash, in which `gateway` is the built binary; it says where the output goes. */
export function runLine(line: string): Promise<Ended> {
  const gateway = `gateway() { '${process.execPath}' '${main}' "$@"; }`;
  return new Promise((resolve) => {
    const child = execFile('bash', ['-c', `${gateway}; ${line}`], (_error, stdout, stderr) => {
      resolve({ code: child.exitCode, stdout, stderr });
    });
  });
}
