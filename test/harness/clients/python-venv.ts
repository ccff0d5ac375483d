import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Beside the other caches of this checkout; `npm ci` clears it. */
const cache = join(import.meta.dirname, '../../../node_modules/.cache/model-gateway/python');
/** Long enough for a first download on a slow line. */
const installLimitMs = 180_000;
const scriptLimitMs = 60_000;

/**
 * The interpreter of a virtual environment with these pinned packages, made once. A marker folder, made last, tells a whole one from one that was left half-made.
 */
export async function pythonWith(python: string, packages: readonly string[]): Promise<string> {
  const digest = createHash('sha256').update(packages.join('\n')).digest('hex').slice(0, 16);
  const folder = join(cache, digest);
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
