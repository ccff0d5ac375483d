import { readFileSync } from 'node:fs';

/** What old systems give a process when nobody asks; assumed where it cannot be read. */
const oldDefault = 1024;

/** How many files and sockets this process may have open. */
export function openFilesLimit(limitsFile = '/proc/self/limits'): number {
  let text: string;
  try {
    text = readFileSync(limitsFile, 'utf8');
  } catch {
    return oldDefault;
  }
  const soft = /^Max open files\s+(\S+)/m.exec(text)?.[1];
  return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft ?? oldDefault);
}
