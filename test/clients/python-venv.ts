import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Long enough for a first download on a slow line. */
const installLimitMs = 180_000;
const scriptLimitMs = 60_000;

/**
 * The interpreter of a virtual environment with these pinned packages, made once per machine and kept in
 * the temporary directory. A marker folder, made last, tells a whole one from one that was left half-made.
 */
export async function pythonWith(python: string, packages: readonly string[]): Promise<string> {
  const name = `model-gateway-venv-${packages.join('-').replace(/[^A-Za-z0-9.-]/g, '_')}`;
  const folder = join(tmpdir(), name);
  const interpreter = join(folder, 'bin', 'python');
  if (existsSync(join(folder, 'complete'))) return interpreter;
  await rm(folder, { recursive: true, force: true });
  await run(python, ['-m', 'venv', folder], { timeout: installLimitMs });
  await run(interpreter, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages], {
    timeout: installLimitMs,
  });
  await mkdir(join(folder, 'complete'));
  return interpreter;
}

/** Runs a script with environment settings and parses the JSON it prints. */
export async function runPython<T>(
  interpreter: string,
  script: string,
  env: Readonly<Record<string, string>>,
): Promise<T> {
  const { stdout } = await run(interpreter, [script], {
    env: { ...process.env, ...env },
    timeout: scriptLimitMs,
    maxBuffer: 16 * 1024 * 1024,
  });
  return JSON.parse(stdout) as T;
}
