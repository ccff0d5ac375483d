import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Disk } from './disk.ts';
import { ReplayProgress } from './replay-progress.ts';
import type { OnBroken } from './row-spool.ts';
import { RowSpool } from './row-spool.ts';

/** Where the slots of all processes of a node lie. */
export interface SpoolFolder {
  readonly directory: string;
  /** Bound of all segments of one slot together. */
  readonly maxBytes: number;
}

/** More processes than ever share a folder. */
const maxSlots = 64;

/** As `RowSpool.openSlot`, in time. */
const openInTime = (
  folder: string,
  maxBytes: number,
  progress: ReplayProgress,
  disk: Disk,
): Promise<RowSpool | null> =>
  disk.do(
    () => RowSpool.openSlot(folder, maxBytes, progress, disk),
    (late) => void late?.close().catch(() => {}),
  );

/**
 * Takes the first slot that no live process holds, with all it contains. Rejects when no slot can be used, and where
 * the disk hangs.
 */
export async function openSpool({ directory, maxBytes }: SpoolFolder): Promise<RowSpool> {
  const disk = new Disk();
  const problems: string[] = [];
  for (let slot = 0; slot < maxSlots; slot += 1) {
    const folder = join(directory, `slot-${slot}`);
    const opening = openInTime(folder, maxBytes, new ReplayProgress(), disk);
    const spool = await opening.catch((error: unknown) => {
      problems.push(`${folder}: ${error instanceof Error ? error.message : String(error)}`);
      return null;
    });
    if (spool !== null) return spool;
  }
  throw new Error(problems[0] ?? `every spool slot in ${directory} is held by another process`);
}

/**
 * Takes over, one after the other, the slots with rows that dead processes left; who takes one closes it.
 * One that cannot be used is told of and left out. `progress` is kept from one call to the next. Rejects when the
 * folder cannot be listed.
 */
export async function* abandonedSpools(
  { directory, maxBytes }: SpoolFolder,
  onBroken: OnBroken,
  progress: ReplayProgress,
  disk: Disk,
): AsyncGenerator<RowSpool> {
  for (const name of await disk.do(() => readdir(directory))) {
    if (!name.startsWith('slot-')) continue;
    const folder = join(directory, name);
    const spool = await openInTime(folder, maxBytes, progress, disk).catch((error: unknown) => {
      onBroken(folder, error);
      return null;
    });
    if (spool === null) continue;
    if (spool.bytes > 0) yield spool;
    else await spool.close();
  }
}
