import { existsSync, readFileSync } from 'node:fs';
import { isStopped } from './children.mjs';
import { npmReason, runNpm } from './npm.mjs';
import { inProject, LaunchError } from './project.mjs';

/** How often a long installation says that it is still alive. */
const PROGRESS_MS = 5_000;

/** Brings node_modules in line with the lock file, when it is not. Throws LaunchError. */
export async function ensureInstalled() {
  const reason = whyInstall();
  if (reason === null) return;
  console.log(`Installing packages (${reason}) ...`);
  const begin = Date.now();
  const seconds = () => Math.round((Date.now() - begin) / 1000);
  const ticker = setInterval(() => console.log(`... still installing, ${seconds()} s`), PROGRESS_MS);
  const { code, output } = await runNpm(['ci', '--include=dev', '--include=optional']);
  clearInterval(ticker);
  if (isStopped()) return;
  if (code !== 0) throw new LaunchError(`The packages could not be installed: ${npmReason(output)}`);
  console.log(`Installed in ${seconds()} s.`);
}

/** Compares what the lock file wants with what npm recorded and with what is really there; null when all is well. */
function whyInstall() {
  const hidden = inProject('node_modules', '.package-lock.json');
  if (!existsSync(hidden)) return 'first start';
  const wanted = readPackages(inProject('package-lock.json'));
  const present = readPackages(hidden);
  for (const [path, entry] of Object.entries(wanted)) {
    // Optional ones are left out where they do not fit the platform.
    if (path === '' || (entry.optional && present[path] === undefined)) continue;
    if (present[path]?.version !== entry.version) return `${path} is not what the lock file says`;
  }
  for (const path of Object.keys(present)) {
    if (!existsSync(inProject(path, 'package.json'))) return `${path} is missing`;
  }
  return null;
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages;
  } catch (error) {
    throw new LaunchError(`${path} cannot be read: ${error.message.split('\n')[0]}`);
  }
}
