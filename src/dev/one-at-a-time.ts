import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const lookAgainMs = 100;

/**
 * Makes what is there once for several processes: one makes it, named by the file `lockPath`, and the others wait until
 * `isMade`. Rejects as `make` does, or with the reason of the signal.
 */
export async function makeOnce(
  lockPath: string,
  isMade: () => boolean,
  make: () => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  while (!isMade()) {
    if (!takeLock(lockPath)) {
      await delay(lookAgainMs, undefined, { signal });
      continue;
    }
    try {
      if (!isMade()) await make();
    } finally {
      rmSync(lockPath, { force: true });
    }
  }
}

const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException).code;

function takeLock(path: string): boolean {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    // Whoever was killed at it holds nobody.
    if (!isHeld(path)) rmSync(path, { force: true });
    return false;
  }
}

function isHeld(path: string): boolean {
  try {
    const pid = Number(readFileSync(path, 'utf8'));
    // Made a moment ago, and not written yet.
    return pid === 0 || process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}
