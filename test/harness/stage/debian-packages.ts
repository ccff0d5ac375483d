import { spawnSync } from 'node:child_process';
import type { Dirent } from 'node:fs';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from './children.ts';
import { hasProgram } from './programs.ts';
import { inCache, StageError } from './project.ts';

/** Programs of Debian packages are used where they lie: nothing is installed, no service starts, root is not needed. */

/**
 * The folder below which the packages' files lie (`usr/bin/...`), fetched once per machine. Dependencies are not
 * followed: name those that are needed. With `architecture` they are those of another processor, to be copied or emulated.
 * Throws StageError where there is no apt, or a package cannot be had.
 */
export async function unpackDebianPackages(
  name: string,
  packages: readonly string[],
  architecture?: string,
): Promise<string> {
  const folder = inCache('debian', name);
  if (existsSync(folder)) return folder;
  if (!hasProgram('apt-get')) {
    throw new StageError(`${name} is taken from Debian packages, and there is no apt-get here.`);
  }
  console.log(`Unpacking the Debian packages of ${name} ...`);
  const unfinished = `${folder}.${process.pid}`;
  try {
    mkdirSync(join(unfinished, 'lists', 'partial'), { recursive: true });
    await (architecture === undefined
      ? download(packages, unfinished)
      : downloadForeign(architecture, packages, unfinished));
    for (const file of readdirSync(unfinished).filter((entry) => entry.endsWith('.deb'))) {
      const { code } = await run('dpkg', ['-x', file, '.'], { cwd: unfinished, stdio: 'ignore' });
      if (code !== 0) throw new StageError(`${file} could not be unpacked.`);
      rmSync(join(unfinished, file));
    }
    rmSync(join(unfinished, 'lists'), { recursive: true });
    renameSync(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return folder;
}

/** Search path of the shared libraries below an unpacked folder, for LD_LIBRARY_PATH. */
export function librariesBelow(folder: string): string {
  const files: Dirent[] = readdirSync(join(folder, 'usr', 'lib'), { recursive: true, withFileTypes: true });
  const folders = files.filter(({ name }) => name.includes('.so')).map(({ parentPath }) => parentPath);
  return [...new Set(folders)].join(delimiter);
}

const archiveKeyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Keeps package lists of its own when the machine's are empty or old, since those are not ours to write. */
async function download(packages: readonly string[], folder: string): Promise<void> {
  const args = ['download', ...packages];
  if (await apt(args, folder)) return;
  if ((await downloadPrivately(args, folder)) || (await downloadFromBackports(args, folder))) return;
  throw missing(packages);
}

/** The machine's lists do not have them. */
async function downloadForeign(
  architecture: string,
  packages: readonly string[],
  folder: string,
): Promise<void> {
  const named = packages.map((name) => `${name}:${architecture}`);
  const more = ['-o', `APT::Architectures::=${architecture}`];
  if (!(await downloadPrivately(['download', ...named], folder, more))) throw missing(named);
}

async function downloadPrivately(
  args: readonly string[],
  folder: string,
  more: readonly string[] = [],
): Promise<boolean> {
  const lists = ['-o', `Dir::State::Lists=${join(folder, 'lists')}`, '-o', `Dir::Cache=${folder}`, ...more];
  return (await apt([...lists, 'update'], folder)) && (await apt([...lists, ...args], folder));
}

const missing = (packages: readonly string[]): StageError =>
  new StageError(`The Debian packages ${packages.join(', ')} could not be downloaded.`);

/** What a release does not have may be in its backports, which few machines have among their sources. */
async function downloadFromBackports(args: readonly string[], folder: string): Promise<boolean> {
  const shown = spawnSync(
    'apt-get',
    ['indextargets', '--format', '$(SITE) $(CODENAME)', 'Created-By: Packages'],
    { encoding: 'utf8' },
  );
  const targets = (shown.stdout ?? '').split('\n').map((line) => line.split(' '));
  // The archive that also has the release's updates: others, of security or of companies, have no backports.
  const [site, release] = targets.find(([at, name]) =>
    targets.some(([same, updates]) => same === at && updates === `${name}-updates`),
  ) ?? [undefined, undefined];
  if (site === undefined || release === undefined) return false;
  const sources = join(folder, 'sources');
  mkdirSync(join(sources, 'lists', 'partial'), { recursive: true });
  const signedBy = existsSync(archiveKeyring) ? `[signed-by=${archiveKeyring}] ` : '';
  writeFileSync(join(sources, 'backports.list'), `deb ${signedBy}${site} ${release}-backports main\n`);
  const only = [
    ...['-o', `Dir::State::Lists=${join(sources, 'lists')}`, '-o', `Dir::Cache=${sources}`],
    ...['-o', `Dir::Etc::SourceList=${join(sources, 'backports.list')}`, '-o', 'Dir::Etc::SourceParts=-'],
  ];
  const isHere = (await apt([...only, 'update'], folder)) && (await apt([...only, ...args], folder));
  rmSync(sources, { recursive: true });
  return isHere;
}

async function apt(args: readonly string[], cwd: string): Promise<boolean> {
  return (await run('apt-get', ['-q', ...args], { cwd, stdio: 'ignore' })).code === 0;
}
