import { fstatSync, writeSync } from 'node:fs';

/**
 * Writes the whole text where a regular file is behind the descriptor; false: there is none, and nothing is written.
 * Throws what the system refuses with. Node's own stream writes a file with one call, and takes the rest for written
 * where the system took less, as it does on a disk that is nearly full.
 */
export function writeToFileBehind(descriptor: number, text: string): boolean {
  if (!fstatSync(descriptor).isFile()) return false;
  const bytes = Buffer.from(text, 'utf8');
  for (let from = 0; from < bytes.length; ) from += writeSync(descriptor, bytes, from);
  return true;
}
