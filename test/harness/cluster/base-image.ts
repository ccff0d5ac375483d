import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { inCache, StageError } from '../stage/project.ts';
import type { BaseParts } from './foreign-base.ts';

/** Where builds see npm's downloads of earlier ones. */
const npmCache = '/var/cache/npm';
const certificates = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Makes the root of a stand-in for the official Node image in `folder`: Debian's libraries and tools, a Node and the npm
 * on PATH, which trusts whom this machine trusts. Throws StageError.
 */
export function makeBaseRoot(folder: string, { debian, node }: BaseParts): void {
  cpSync(debian, folder, { recursive: true, verbatimSymlinks: true });
  const local = join(folder, 'usr/local');
  for (const name of ['bin', 'etc', 'lib/node_modules']) mkdirSync(join(local, name), { recursive: true });
  copyFileSync(node, join(local, 'bin/node'));
  cpSync(findNpm(), join(local, 'lib/node_modules/npm'), { recursive: true });
  for (const name of ['npm', 'npx']) {
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(local, 'bin', name));
  }
  const npmrc = [`cache=${npmCache}`];
  if (existsSync(certificates)) {
    mkdirSync(join(folder, dirname(certificates)), { recursive: true });
    copyFileSync(certificates, join(folder, certificates));
    npmrc.push(`cafile=${certificates}`);
  }
  writeFileSync(join(local, 'etc/npmrc'), `${npmrc.join('\n')}\n`);
  writeFileSync(
    join(folder, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n',
  );
  writeFileSync(join(folder, 'etc/group'), 'root:x:0:\nnode:x:1000:\n');
}

/** `--volume` arguments that keep npm's downloads on this machine. */
export function npmCacheVolume(): string[] {
  const folder = inCache('npm');
  mkdirSync(folder, { recursive: true });
  return ['--volume', `${folder}:${npmCache}`];
}

/** The folder of the npm on PATH. */
function findNpm(): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const command = folders.map((folder) => join(folder, 'npm')).find((path) => existsSync(path));
  if (command === undefined) throw new StageError('The base image needs npm, and none is on PATH.');
  return dirname(dirname(realpathSync(command)));
}
