import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** A lock that falls with its process, however that ends. */
export interface SpoolLock {
  release(): void;
}

const sqliteBusy = 5;

/**
 * Takes the lock file at `path`, or returns null when another process (or another holder in this one) has
 * it. Node has no file locks of its own and a pid in a file proves nothing in containers, where every
 * process is pid 1; SQLite takes a real lock of the operating system, on an empty file. Throws when the
 * file cannot be made. Synchronous, so nothing bounds it where the disk hangs: `mkdir` comes first, and hangs there.
 */
export function tryLock(path: string): SpoolLock | null {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE'); // no journal file beside it
    return { release: () => database.close() };
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === sqliteBusy) return null;
    throw error;
  }
}

/** Makes the folder if need be and takes its lock; null when another has it. Rejects when it cannot be used. */
export async function lockFolder(folder: string): Promise<SpoolLock | null> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return tryLock(join(folder, 'lock'));
}
