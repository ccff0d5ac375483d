import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isStopped, runQuietly } from '../stage/children.ts';
import { inProject, StageError } from '../stage/project.ts';

const files = ['package.json', 'package-lock.json', '.npmrc'];
const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];

/**
 * A folder whose node_modules holds exactly what the lock file in `place` says: made once for each lock file and kept in
 * the temporary directory. Throws StageError that names `what`.
 */
export async function nodePackages(place: string, what: string): Promise<string> {
  const source = (name: string) => inProject(place, name);
  const hash = createHash('sha256');
  for (const name of files) hash.update(readFileSync(source(name)));
  const folder = join(tmpdir(), `model-gateway-packages-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(folder)) return folder;

  console.log(`Installing ${what} ...`);
  // Renamed when whole, so that a broken or parallel installation does no harm.
  const unfinished = `${folder}.unfinished-${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    for (const name of files) copyFileSync(source(name), join(unfinished, name));
    const args = [...quiet, 'ci', '--ignore-scripts', `--prefix=${unfinished}`];
    const { code, output } = await runQuietly('npm', args);
    if (isStopped()) return folder;
    if (code !== 0) throw new StageError(`Could not install ${what}: ${output.trim()}`);
    if (!existsSync(folder)) renameSync(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return folder;
}
