import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The program's absolute path on PATH, or null. */
export function findProgram(name: string): string | null {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // not in this folder
    }
  }
  return null;
}

/** Whether PATH holds the program. */
export const hasProgram = (name: string): boolean => findProgram(name) !== null;
