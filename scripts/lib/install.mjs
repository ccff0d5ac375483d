import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { alone } from './alone.mjs';
import { isStopped } from './children.mjs';
import { extentOf, largerExtent, partOf } from './extents.mjs';
import { npmReason, runNpm } from './npm.mjs';
import { watchFolder } from './progress.mjs';
import { inProject, LaunchError, root } from './project.mjs';

/**
 * Brings node_modules in line with the lock file, as far as `extent` asks for it (extents.mjs). What is there of a
 * larger extent stays. Throws LaunchError.
 */
export async function ensureInstalled(extent) {
  if (whatToInstall(extent) === null) return;
  await alone(inProject('.start.lock'), async () => {
    const missing = whatToInstall(extent);
    if (missing !== null) await install(missing);
  });
}

/** What is missing, and why it is wanted; null: nothing is. */
function whatToInstall(extent) {
  const present = readPresent();
  const wanted = present === null ? extent : largerExtent(extent, extentOf(present));
  const lock = readJson(inProject('package-lock.json'));
  const part = partOf(lock.packages, wanted);
  const reason = whyInstall(present, part);
  return reason === null ? null : { wanted, lock, part, reason };
}

async function install({ wanted, lock, part, reason }) {
  console.log(`Installing packages (${reason}) ...`);
  const place = wanted === 'try' ? inProject('.start') : root;
  const progress = watchFolder('packages', join(place, 'node_modules'));
  let said = '';
  const { code, output } = await (wanted === 'try'
    ? installPart(lock, part, place)
    : installFrom(root, wanted)
  ).finally(() => {
    said = progress.end();
  });
  if (isStopped()) return;
  if (code !== 0) throw new LaunchError(`The packages could not be installed: ${npmReason(output)}`);
  console.log(`Installed ${said}.`);
  if (wanted === 'try') moveIn(place);
}

function installFrom(folder, extent) {
  const tools = extent === 'all' ? '--include=dev' : '--omit=dev';
  return runNpm(['ci', tools, '--include=optional'], folder);
}

/** npm installs all of a lock file or what it files under names of its own, so it gets a project with this part only. */
async function installPart(lock, packages, place) {
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify(packages['']));
  writeFileSync(join(place, 'package-lock.json'), JSON.stringify({ ...lock, packages }));
  return installFrom(place, 'run');
}

/** In one step, so that a stop leaves what was there or what is to be there. */
function moveIn(place) {
  rmSync(inProject('node_modules'), { recursive: true, force: true });
  renameSync(join(place, 'node_modules'), inProject('node_modules'));
  rmSync(place, { recursive: true, force: true });
}

/** What npm recorded of its last installation; null before the first. */
function readPresent() {
  const hidden = inProject('node_modules', '.package-lock.json');
  return existsSync(hidden) ? readJson(hidden).packages : null;
}

/** Compares what the lock file wants with what npm recorded and with what is really there; null when all is well. */
function whyInstall(present, wanted) {
  if (present === null) return 'first start';
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '' || present[path]?.version === entry.version) continue;
    // Optional ones are left out where they do not fit the platform.
    if ((entry.optional || entry.devOptional) && present[path] === undefined) continue;
    return present[path] === undefined
      ? `${path} is not there yet`
      : `${path} is not what the lock file says`;
  }
  for (const path of Object.keys(present)) {
    if (!existsSync(inProject(path, 'package.json'))) return `${path} is missing`;
  }
  return null;
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new LaunchError(`${path} cannot be read: ${error.message.split('\n')[0]}`);
  }
}
