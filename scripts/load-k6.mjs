import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { run } from './lib/children.mjs';
import { LaunchError } from './lib/project.mjs';

/** Built when there is none on PATH. */
const version = 'v1.8.1';

/** Kept between runs; remove the folder to build anew. */
function toolsFolder() {
  return join(homedir(), '.cache', 'model-gateway', 'load-tools');
}

/** A k6 that runs: from PATH, built earlier, or built now with Go (about a minute). Throws LaunchError. */
export async function findK6() {
  const built = join(toolsFolder(), 'k6');
  if (reports('k6', 'k6 ')) return 'k6';
  if (reports(built, version)) return built;
  if (spawnSync('go', ['version']).status !== 0) {
    throw new LaunchError('there is neither k6 nor Go on this machine: install one of them.');
  }
  console.log(`Building k6 ${version} ...`);
  mkdirSync(toolsFolder(), { recursive: true });
  // The rest of the machine goes first: a build takes a minute of every core.
  const { code, output } = await run('nice', ['-n', '15', 'go', 'install', `go.k6.io/k6@${version}`], {
    cwd: toolsFolder(),
    env: { ...process.env, GOBIN: toolsFolder(), CGO_ENABLED: '0', GOTOOLCHAIN: 'local' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (code === 0 && reports(built, version)) return built;
  const reason = output.trim().split('\n').slice(-3).join('; ');
  throw new LaunchError(`k6 could not be built (a recent Go is needed): ${reason}`);
}

function reports(program, text) {
  const { status, stdout } = spawnSync(program, ['version'], { encoding: 'utf8' });
  return status === 0 && stdout.includes(text);
}
