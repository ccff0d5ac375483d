import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from './children.mjs';
import { inCache, LaunchError } from './project.mjs';

const installHint = 'install the Debian package redis-server (or valkey), or set REDIS_URL.';
/** redis-server itself is another name of the program in redis-tools, so its own package is not needed. */
const unpackedPackages = ['redis-tools', 'liblzf1', 'libjemalloc2', 'libatomic1'];

/**
 * A Redis server program that runs here: `{ program, libraries }`, libraries being a search path or undefined. Looks on PATH,
 * then asks apt as root, then unpacks Debian packages into the cache without root. Throws LaunchError.
 */
export async function findRedisServer() {
  const found = onPath() ?? unpacked();
  if (found !== null) return found;
  if (!has('apt-get')) throw new LaunchError(`There is no Redis server for the tests: ${installHint}`);
  if (process.getuid?.() === 0) {
    console.log('Installing the Debian package redis-server for the tests ...');
    if (!(await aptInstall()))
      throw new LaunchError(`redis-server could not be installed through apt-get: ${installHint}`);
    return onPath();
  }
  console.log('Unpacking the Debian packages of Redis for the tests ...');
  await unpack();
  const server = unpacked();
  if (server === null) throw new LaunchError(`Redis could not be unpacked without root: ${installHint}`);
  return server;
}

function has(name) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, name)));
}

function onPath() {
  for (const program of ['redis-server', 'valkey-server']) {
    if (has(program) && runs(program)) return { program };
  }
  return null;
}

function unpacked() {
  const program = inCache('redis', 'redis-server');
  if (!existsSync(program)) return null;
  const libraries = readdirSync(inCache('redis', 'usr', 'lib'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.name.includes('.so'))
    .map((entry) => entry.parentPath ?? entry.path);
  const server = { program, libraries: [...new Set(libraries)].join(delimiter) };
  return runs(program, server.libraries) ? server : null;
}

function runs(program, libraries) {
  const env = libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
  return spawnSync(program, ['--version'], { env, stdio: 'ignore' }).status === 0;
}

async function aptInstall() {
  const install = ['install', '-y', '--no-install-recommends', 'redis-server'];
  if (await apt(install)) return true;
  return (await apt(['update'])) && (await apt(install));
}

/** Keeps the package lists in the cache too, since the machine's own may be empty and are not ours to write. */
async function unpack() {
  const folder = inCache('redis');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'lists', 'partial'), { recursive: true });
  const privately = ['-o', `Dir::State::Lists=${join(folder, 'lists')}`, '-o', `Dir::Cache=${folder}`];
  const download = ['download', ...unpackedPackages];
  if (!(await apt(download, folder))) {
    if (!(await apt([...privately, 'update'], folder))) return;
    if (!(await apt([...privately, ...download], folder))) return;
  }
  for (const name of readdirSync(folder).filter((entry) => entry.endsWith('.deb'))) {
    await run('dpkg', ['-x', name, '.'], { cwd: folder, stdio: 'ignore' });
  }
  // The program decides by its name what it is.
  const twin = join(folder, 'usr', 'bin', 'redis-check-rdb');
  if (existsSync(twin)) copyFileSync(twin, join(folder, 'redis-server'));
  rmSync(join(folder, 'lists'), { recursive: true, force: true });
}

async function apt(args, cwd = '/') {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  return (await run('apt-get', ['-q', ...args], { cwd, env, stdio: 'ignore' })).code === 0;
}
