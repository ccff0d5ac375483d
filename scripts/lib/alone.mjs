import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isStopped } from './children.mjs';

const lookAgainMs = 250;

/**
 * Does `work` while no other process does work of the same `path`, a file that is there as long as one does: two first
 * starts at once would take each other's half-installed packages away. Who waits ought to look what there still is to
 * do. Undefined when a stop signal came first.
 */
export async function alone(path, work) {
  let isTold = false;
  while (!take(path)) {
    if (!isTold) console.log('Another start is fetching the same: waiting for it ...');
    isTold = true;
    await sleep(lookAgainMs);
    if (isStopped()) return undefined;
  }
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}

function take(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    if (!isHeld(path)) rmSync(path, { force: true });
    return false;
  }
}

/** False where whoever made the file was killed. */
function isHeld(path) {
  let pid = 0;
  try {
    pid = Number(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return true;
    throw error;
  }
  // Made a moment ago, and not written yet.
  if (!(pid > 0)) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code !== 'ESRCH';
  }
}
