import { appendFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Disk } from './disk.ts';
import { DiskHangs } from './disk.ts';

/** What a person may want to look at; beyond it nothing is kept, since rows that are refused come without end. */
const maxBadBytes = 16 * 1024 * 1024;

/**
 * Keeps lines that are torn or that Postgres refuses in `bad.ndjson`, up to a bound. Resolves to false when it does not
 * take all of them. Rejects with DiskHangs: then they may lie there later.
 */
export async function setAside(
  folder: string,
  lines: readonly (Buffer | string)[],
  disk: Disk,
): Promise<boolean> {
  if (lines.length === 0) return true;
  const path = join(folder, 'bad.ndjson');
  const text = Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]));
  try {
    const size = await disk.do(() => stat(path).then((found) => found.size, absentSize));
    if (size > maxBadBytes) return false;
    await disk.do(() => appendFile(path, text, { mode: 0o600 }));
    return true;
  } catch (error) {
    if (error instanceof DiskHangs) throw error;
    return false;
  }
}

const absentSize = (): number => 0;
