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
 * An unfinished head of a thousand tiny fields keeps 33 KB, an idle connection 17, a request whose head is as large as
 * it may be some 40 while it waits for its body.
 */
const connectionBytes = 64 * 1024;

/**
 * Connections of clients that leave the process what it needs besides: a request that is served has a second socket
 * towards its vendor, and rows, tables and stores must be reached whoever floods the door. No budget counts what a
 * stranger sends before its head is whole, so the number is bounded by the heap too.
 */
export function clientConnectionsWithin(openFiles: number, heapBytes: number): number {
  return Math.floor(Math.min(openFiles / 2, heapBytes / connectionBytes));
}
