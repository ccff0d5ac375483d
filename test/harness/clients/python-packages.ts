import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { inProject, StageError } from '../stage/project.ts';
import { pythonWith } from './python-venv.ts';

/** An interpreter that has the pinned clients for Python, or null where there is no Python. Throws StageError. */
export function pythonPackages(): Promise<string | null> {
  const pins = readFileSync(inProject('test', 'clients-matrix', 'requirements.txt'), 'utf8');
  const packages = pins.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return optionalPython('The clients for Python', packages);
}

/**
 * An interpreter that has these packages, made once for each list, or null where there is no Python. Throws StageError
 * naming `what` where they cannot be had.
 */
export async function optionalPython(what: string, packages: readonly string[]): Promise<string | null> {
  if (spawnSync('python3', ['--version'], { stdio: 'ignore' }).status !== 0) return null;
  try {
    return await pythonWith('python3', packages);
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    const reason = (stderr ?? message).trim().split('\n').at(-1);
    throw new StageError(`${what} could not be installed: ${reason}`);
  }
}
