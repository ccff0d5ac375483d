import { getHeapStatistics } from 'node:v8';

const mebibyte = 1024 * 1024;
/** What Node 24 gives a semi-space on 64 bits. */
const defaultSemiSpace = 64;
/** V8 counts two semi-spaces, and large objects of as much as one, among the limit of the whole heap. */
const youngSemiSpaces = 3;

/** Of the limit: beyond it garbage alone cannot account for what is in use, and the rest is room to finish. */
export const guardedHeapShare = 0.85;

const semiSpaceFlag = /--max[-_]semi[-_]space[-_]size=(\d+)/g;

/**
 * Bytes of the heap beyond which V8 ends the process: the old generation's. `heap_size_limit` counts the young one too,
 * 192 MiB by default, which cannot hold what lasts. `flags`: what Node was started with, the last one wins.
 */
export function oldGenerationBytes(heapSizeLimit: number, flags: string): number {
  const given = [...flags.matchAll(semiSpaceFlag)].at(-1)?.[1];
  // Zero is V8's word for its own choice.
  const semiSpace = Number(given ?? 0) || defaultSemiSpace;
  const old = heapSizeLimit - youngSemiSpaces * semiSpace * mebibyte;
  // Never below a quarter: an estimate of the young generation must not leave nothing for all the rest.
  return Math.max(old, Math.floor(heapSizeLimit / 4));
}

/** The same of this process, whose environment it is. */
export function heapLimitBytes(environment: NodeJS.ProcessEnv): number {
  const flags = [environment['NODE_OPTIONS'] ?? '', ...process.execArgv].join(' ');
  return oldGenerationBytes(getHeapStatistics().heap_size_limit, flags);
}
