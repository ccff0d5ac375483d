import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runQuietly } from '../stage/children.ts';
import { inProject, StageError } from '../stage/project.ts';

/** llama.cpp with its own HTTP server, prebuilt for Linux and macOS (x86-64, arm64): no compiler is needed. */
const distribution = 'xllamacpp';
const version = '2026.10.11549';
const oldestPython = { major: 3, minor: 10 };

/** About 33 MB; a slow line gets three chances. */
const patience = ['--timeout=30', '--retries=2'];

export interface ModelServer {
  /** An interpreter that runs it. */
  readonly python: string;
  /** Where its package lies. */
  readonly packages: string;
  /** What to call it. */
  readonly name: string;
}

/** Installed once into the cache of this checkout. Throws StageError with the reason that it cannot be. */
export async function modelServerPackage(): Promise<ModelServer> {
  const python = 'python3';
  const { found, major, minor } = versionOf(python);
  const name = `${distribution}-${version}-python${major}.${minor}`;
  const packages = inProject('node_modules', '.cache', 'model-gateway', 'real-model', name);
  if (!existsSync(packages)) await install(python, packages);
  if (!imports(python, packages)) {
    rmSync(packages, { recursive: true, force: true });
    throw new StageError(`${distribution} ${version} was installed, but cannot be loaded here.`);
  }
  return { python, packages, name: `llama.cpp (${distribution} ${version}, Python ${found})` };
}

function versionOf(python: string): { found: string; major: number; minor: number } {
  const question = 'import platform; print(platform.python_version())';
  const { status, stdout } = spawnSync(python, ['-c', question], { encoding: 'utf8' });
  const wanted = `${oldestPython.major}.${oldestPython.minor}`;
  if (status !== 0) throw new StageError(`Python ${wanted} or newer is not installed.`);
  const found = stdout.trim();
  const [major = 0, minor = 0] = found.split('.').map(Number);
  const isNewEnough =
    major > oldestPython.major || (major === oldestPython.major && minor >= oldestPython.minor);
  if (!isNewEnough) throw new StageError(`Python ${wanted} or newer is needed, this is ${found}.`);
  return { found, major, minor };
}

/** Into a folder of its own that is renamed when whole, so that a broken or parallel installation does no harm. */
async function install(python: string, packages: string): Promise<void> {
  console.log(`Installing ${distribution} ${version} ...`);
  const unfinished = `${packages}.unfinished-${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    const pip = await findPip(python, join(unfinished, 'venv'));
    const target = join(unfinished, 'packages');
    const args = ['install', '--quiet', '--disable-pip-version-check', ...patience];
    const wheel = ['--only-binary=:all:', `--target=${target}`, `${distribution}==${version}`];
    const { code, output } = await runQuietly(pip, ['-m', 'pip', ...args, ...wheel]);
    if (code !== 0) throw new StageError(`${distribution} could not be installed: ${lastLine(output)}`);
    if (!existsSync(packages)) renameSync(target, packages);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** An interpreter with pip: the system's own, else one of a virtual environment. */
async function findPip(python: string, environment: string): Promise<string> {
  if ((await runQuietly(python, ['-m', 'pip', '--version'])).code === 0) return python;
  const { code } = await runQuietly(python, ['-m', 'venv', environment]);
  if (code !== 0) throw new StageError('Python has neither pip nor venv (Debian: python3-venv).');
  return join(environment, 'bin', 'python');
}

function imports(python: string, packages: string): boolean {
  const env = { ...process.env, PYTHONPATH: packages };
  return spawnSync(python, ['-c', `import ${distribution}`], { env, stdio: 'ignore' }).status === 0;
}

function lastLine(output: string): string {
  return output.trim().split('\n').at(-1) || 'no reason given';
}
