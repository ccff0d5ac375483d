import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { inProject, LaunchError } from '../lib/project.mjs';

/**
 * An interpreter that has the pinned clients for Python, or null where there is no Python: then the tests say what
 * that means. Made once for each list of pins. Throws LaunchError.
 */
export async function pythonPackages() {
  if (spawnSync('python3', ['--version'], { stdio: 'ignore' }).status !== 0) return null;
  const { pythonWith } = await import('../../test/clients/python-venv.ts');
  const pins = readFileSync(inProject('test', 'clients-matrix', 'requirements.txt'), 'utf8');
  const packages = pins.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  try {
    return await pythonWith('python3', packages);
  } catch (error) {
    const reason = String(error.stderr ?? error.message)
      .trim()
      .split('\n')
      .at(-1);
    throw new LaunchError(`The clients for Python could not be installed: ${reason}`);
  }
}
