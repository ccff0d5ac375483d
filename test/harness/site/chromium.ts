import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { patient } from '../measure/crowding.ts';
import { librariesBelow, unpackDebianPackages } from '../stage/debian-packages.ts';
import { findProgram } from '../stage/programs.ts';
import { inCache, StageError } from '../stage/project.ts';
import type { Tab } from './dev-tools.ts';
import { Browser } from './dev-tools.ts';

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
/** Against hanging only. */
const startLimitMs = 60_000;

interface Program {
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Of the machine, else of Debian's packages with those that the machine lacks. Throws StageError. */
async function findChromium(): Promise<Program> {
  const own = names.map(findProgram).find((path) => path !== null);
  if (own !== undefined) return { path: own, env: process.env };
  const folder = await unpackDebianPackages('chromium', packagesOf('chromium'));
  return {
    path: join(folder, 'usr', 'lib', 'chromium', 'chromium'),
    env: { ...process.env, LD_LIBRARY_PATH: librariesBelow(folder) },
  };
}

/** What an installation would bring, asked of apt, which installs nothing; the package alone where they are here. */
function packagesOf(name: string): string[] {
  if (existsSync(inCache('debian', name))) return [name];
  const args = ['-s', '-q', 'install', '--no-install-recommends', name];
  const { stdout } = spawnSync('apt-get', args, { encoding: 'utf8' });
  const found = [...(stdout ?? '').matchAll(/^Inst (\S+)/gm)].map(([, one = '']) => one);
  if (!found.includes(name)) throw new StageError(`There is no ${name} here, and apt-get knows of none.`);
  return found;
}

export interface Chromium {
  /** A tab of its own. */
  readonly tab: Tab;
  close(): Promise<void>;
}

/** A browser without a window, whose profile is `folder`. It ends with this process. Throws StageError. */
export async function startChromium(folder: string): Promise<Chromium> {
  const { path, env } = await findChromium();
  const args = ['--headless', '--remote-debugging-pipe', `--user-data-dir=${folder}`, '--no-first-run'];
  // Containers have small shared memory and often no namespaces for its sandbox; it sees our own pages only.
  args.push('--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--disable-background-networking');
  const child = spawn(path, args, { env, stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] });
  let said = '';
  child.stderr?.on('data', (bytes) => {
    said = `${said}${bytes}`.slice(-1_000);
  });
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code) => resolve(`it ended with ${code}: ${said.trim().split('\n').at(-1)}`));
  });
  const close = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  const browser = new Browser(child.stdio[3] as Writable, child.stdio[4] as Readable);
  const timer = setTimeout(() => child.kill('SIGKILL'), patient(startLimitMs));
  const tab = await Promise.race([browser.openTab().catch(() => null), ended.then(() => null)]);
  clearTimeout(timer);
  if (tab !== null) return { tab, close };
  await close();
  throw new StageError(`Chromium could not be started, ${await ended}`);
}
