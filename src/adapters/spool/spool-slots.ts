import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Disk } from './disk.ts';
import type { ReplayProgress } from './replay-progress.ts';
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

/** Takes the first slot that no live process holds, with all it contains. Rejects when no slot can be used. */
export async function openSpool({ directory, maxBytes }: SpoolFolder): Promise<RowSpool> {
  const problems: string[] = [];
  for (let slot = 0; slot < maxSlots; slot += 1) {
    const folder = join(directory, `slot-${slot}`);
    const spool = await RowSpool.openSlot(folder, maxBytes).catch((error: unknown) => {
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
    const opening = disk.do(
      () => RowSpool.openSlot(folder, maxBytes, progress, disk),
      (late) => void late?.close(),
    );
    const spool = await opening.catch((error: unknown) => {
      onBroken(folder, error);
      return null;
    });
    if (spool === null) continue;
    if (spool.bytes > 0) yield spool;
    else await spool.close();
  }
}
