import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isStopped } from '../lib/children.mjs';
import { npmReason, runNpm } from '../lib/npm.mjs';
import { inProject, LaunchError } from '../lib/project.mjs';

const files = ['package.json', 'package-lock.json', '.npmrc'];

/**
 * A folder whose node_modules holds exactly what the lock file of the client matrix says: made once for each lock
 * file and kept in the temporary directory. Throws LaunchError.
 */
export async function nodePackages() {
  const source = (name) => inProject('test', 'clients-matrix', name);
  const hash = createHash('sha256');
  for (const name of files) hash.update(readFileSync(source(name)));
  const folder = join(tmpdir(), `model-gateway-clients-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(folder)) return folder;

  console.log('Installing the clients for Node ...');
  // Renamed when whole, so that a broken or parallel installation does no harm.
  const unfinished = `${folder}.unfinished-${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    for (const name of files) copyFileSync(source(name), join(unfinished, name));
    const { code, output } = await runNpm(['ci', '--ignore-scripts', `--prefix=${unfinished}`]);
    if (isStopped()) return folder;
    if (code !== 0) throw new LaunchError(`The clients could not be installed: ${npmReason(output)}`);
    if (!existsSync(folder)) renameSync(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return folder;
}
