import { renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isStopped } from './children.mjs';

const lookAgainMs = 250;
/** How often whoever is at work says so. */
const aliveEveryMs = 1_000;
/** Whoever has said nothing for so long was killed; a folder of packages is removed in less. */
const deadAfterMs = 20_000;

/**
 * Does `work` while no other process does work of the same `path`, a file that is there as long as one does: two first
 * starts at once would take each other's half-installed packages away. Who waits ought to look what there still is to
 * do. Undefined when a stop signal came first. By its time, and not by the process it names: containers that share a
 * checkout have the same numbers. (`src/dev/one-at-a-time.ts` is the same with types, since these scripts have none.)
 */
export async function alone(path, work) {
  let isTold = false;
  while (!take(path)) {
    if (!isTold) console.log(`Another start is fetching the same (${path}): waiting for it ...`);
    isTold = true;
    await sleep(lookAgainMs);
    if (isStopped()) return undefined;
  }
  const alive = setInterval(() => touch(path), aliveEveryMs);
  try {
    return await work();
  } finally {
    clearInterval(alive);
    rmSync(path, { force: true });
  }
}

function take(path) {
  try {
    writeFileSync(path, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    if (isDead(path)) setAside(path);
    return false;
  }
}

function touch(path) {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    // Somebody took it for dead: what is done here goes on.
  }
}

function isDead(path) {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats !== undefined && Date.now() - stats.mtimeMs > deadAfterMs;
}

/** In one step, which only one of those who wait can do. */
function setAside(path) {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
    rmSync(aside, { force: true });
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
}
