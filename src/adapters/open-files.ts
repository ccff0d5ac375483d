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

/**
 * Connections of clients that leave the process what it needs besides: a request that is served has a second socket
 * towards its vendor, and rows, tables and stores must be reached whoever floods the door.
 */
export function clientConnectionsWithin(openFiles: number): number {
  return Math.floor(openFiles / 2);
}
