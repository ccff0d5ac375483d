import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { librariesBelow, unpackDebianPackages } from './debian-packages.ts';
import { hasProgram } from './programs.ts';
import { StageError } from './project.ts';

const installHint = 'install the Debian package redis-server (or valkey), or set REDIS_URL.';
/** redis-server itself is another name of the program in redis-tools, so its own package is not needed. */
const packages = ['redis-tools', 'liblzf1', 'libjemalloc2', 'libatomic1'];

/** How the tests start a Redis: environment of theirs. */
export interface RedisProgram {
  readonly TEST_REDIS_SERVER: string;
  readonly TEST_REDIS_LIBRARIES?: string;
}

/** A Redis server that runs here: looks on PATH, then unpacks Debian packages, without root. Throws StageError. */
export async function findRedisServer(): Promise<RedisProgram> {
  const installed = ['redis-server', 'valkey-server'].find((name) => hasProgram(name) && runs(name));
  if (installed !== undefined) return { TEST_REDIS_SERVER: installed };
  if (!hasProgram('apt-get')) throw new StageError(`There is no Redis server for the tests: ${installHint}`);
  const folder = await unpackDebianPackages('redis', packages);
  const program = namedServer(join(folder, 'usr', 'bin'));
  const libraries = librariesBelow(folder);
  if (!runs(program, libraries)) {
    throw new StageError(`The unpacked Redis server does not run: ${installHint}`);
  }
  return { TEST_REDIS_SERVER: program, TEST_REDIS_LIBRARIES: libraries };
}

/** Valkey beside it. Its libraries are those of Redis. Throws StageError. */
export async function findValkeyServer(): Promise<{ readonly TEST_VALKEY_SERVER: string }> {
  if (hasProgram('valkey-server') && runs('valkey-server')) return { TEST_VALKEY_SERVER: 'valkey-server' };
  const folder = await unpackDebianPackages('valkey', ['valkey-tools']);
  return { TEST_VALKEY_SERVER: namedServer(join(folder, 'usr', 'bin'), 'valkey') };
}

/** The program decides by its name what it is. */
function namedServer(bin: string, kind: 'redis' | 'valkey' = 'redis'): string {
  const program = join(bin, `${kind}-server`);
  if (!existsSync(program)) copyFileSync(join(bin, `${kind}-check-rdb`), program);
  return program;
}

function runs(program: string, libraries?: string): boolean {
  const env = libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
  return spawnSync(program, ['--version'], { env, stdio: 'ignore' }).status === 0;
}
