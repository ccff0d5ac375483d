import { appendFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Disk } from './disk.ts';

/** What a person may want to look at; beyond it nothing is kept, since rows that are refused come without end. */
const maxBadBytes = 16 * 1024 * 1024;

/** Keeps lines that are torn or that Postgres refuses in `bad.ndjson`, up to a bound. Never rejects. */
export async function setAside(
  folder: string,
  lines: readonly (Buffer | string)[],
  disk: Disk,
): Promise<void> {
  if (lines.length === 0) return;
  const path = join(folder, 'bad.ndjson');
  const size = await disk
    .do(() => stat(path))
    .then(
      (found) => found.size,
      () => 0,
    );
  if (size > maxBadBytes) return;
  const text = Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]));
  await disk.do(() => appendFile(path, text, { mode: 0o600 })).catch(() => {});
}
