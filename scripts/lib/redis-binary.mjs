import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { hasProgram, librariesBelow, unpackDebianPackages } from './debian-packages.mjs';
import { LaunchError } from './project.mjs';

const installHint = 'install the Debian package redis-server (or valkey), or set REDIS_URL.';
/** redis-server itself is another name of the program in redis-tools, so its own package is not needed. */
const packages = ['redis-tools', 'liblzf1', 'libjemalloc2', 'libatomic1'];

/**
 * A Redis server program that runs here: `{ program, libraries }`, libraries being a search path or undefined. Looks on
 * PATH, then unpacks Debian packages, which needs no root. Throws LaunchError.
 */
export async function findRedisServer() {
  const installed = ['redis-server', 'valkey-server'].find((name) => hasProgram(name) && runs(name));
  if (installed !== undefined) return { program: installed };
  if (!hasProgram('apt-get')) throw new LaunchError(`There is no Redis server for the tests: ${installHint}`);
  const folder = await unpackDebianPackages('redis', packages);
  const server = { program: namedServer(join(folder, 'usr', 'bin')), libraries: librariesBelow(folder) };
  if (runs(server.program, server.libraries)) return server;
  throw new LaunchError(`The unpacked Redis server does not run: ${installHint}`);
}

/** The program decides by its name what it is. */
function namedServer(bin) {
  const program = join(bin, 'redis-server');
  if (!existsSync(program)) copyFileSync(join(bin, 'redis-check-rdb'), program);
  return program;
}

function runs(program, libraries) {
  const env = libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
  return spawnSync(program, ['--version'], { env, stdio: 'ignore' }).status === 0;
}
