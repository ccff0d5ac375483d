import { renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const lookAgainMs = 100;
/** How often whoever is at work says so. */
const aliveEveryMs = 1_000;
/** Whoever has said nothing for so long was killed. */
const deadAfterMs = 20_000;

/**
 * Makes what is there once for several processes: one makes it, while the file `lockPath` is there, and the others wait
 * until `isMade`. Rejects as `make` does, and with an AbortError. As `scripts/lib/alone.mjs` does, for what runs before
 * anything with types can.
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
    const alive = setInterval(() => touch(lockPath), aliveEveryMs);
    try {
      if (!isMade()) await make();
    } finally {
      clearInterval(alive);
      rmSync(lockPath, { force: true });
    }
  }
}

const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException).code;

function takeLock(path: string): boolean {
  try {
    writeFileSync(path, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    if (isDead(path)) removeDead(path);
    return false;
  }
}

function touch(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    // Somebody took it for dead: what is made here goes on.
  }
}

function isDead(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats !== undefined && Date.now() - stats.mtimeMs > deadAfterMs;
}

/** In one step, which only one of those who wait can do. */
function removeDead(path: string): void {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
    rmSync(aside, { force: true });
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}
