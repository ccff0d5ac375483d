import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { runQuietly } from '../stage/children.ts';
import { inCache, StageError } from '../stage/project.ts';

/** Built when there is none on PATH. */
const version = 'v1.8.1';

/** A k6 that runs: from PATH, built earlier, or built now with Go (about a minute). Throws StageError. */
export async function findK6(): Promise<string> {
  /** Kept between runs; remove it to build anew. */
  const folder = inCache('load-tools');
  const built = join(folder, 'k6');
  if (reports('k6', 'k6 ')) return 'k6';
  if (reports(built, version)) return built;
  if (spawnSync('go', ['version']).status !== 0) {
    throw new StageError('there is neither k6 nor Go on this machine: install one of them.');
  }
  console.log(`Building k6 ${version} ...`);
  mkdirSync(folder, { recursive: true });
  // The rest of the machine goes first: a build takes a minute of every core.
  const { code, output } = await runQuietly('nice', ['-n', '15', 'go', 'install', `go.k6.io/k6@${version}`], {
    cwd: folder,
    env: { ...process.env, GOBIN: folder, CGO_ENABLED: '0', GOTOOLCHAIN: 'local' },
  });
  if (code === 0 && reports(built, version)) return built;
  const reason = output.trim().split('\n').slice(-3).join('; ');
  throw new StageError(`k6 could not be built (a recent Go is needed): ${reason}`);
}

function reports(program: string, text: string): boolean {
  const { status, stdout } = spawnSync(program, ['version'], { encoding: 'utf8' });
  return status === 0 && stdout.includes(text);
}
