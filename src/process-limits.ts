import type { z } from 'zod';
import { memoryCacheWithin } from './adapters/cache/memory-cache.ts';
import { containerBytes, guardedMemoryShare } from './adapters/system/process-memory.ts';
import { clientConnectionsWithin, openFilesLimit } from './adapters/upstream/open-files.ts';
import type { UserSocketLimits } from './adapters/upstream/user-socket-limits.ts';
import { userSocketLimitsWithin } from './adapters/upstream/user-socket-limits.ts';
import type { environmentSchema } from './environment.ts';
import { guardedHeapShare, heapLimitBytes } from './heap-limit.ts';

/** What this process may hold, as its heap, its container and its files let it; bytes. */
export interface ProcessLimits {
  /** Beyond it V8 ends the process. */
  readonly heapBytes: number;
  /** 0: not watched. */
  readonly maxHeapBytes: number;
  /** Of memory that cannot be taken back from the process; 0: not watched. */
  readonly maxMemoryBytes: number;
  readonly maxConnections: number;
  readonly userSockets: UserSocketLimits;
  readonly cacheMemoryBytes: number;
}

type Given = Pick<
  z.output<typeof environmentSchema>,
  'GW_MAX_HEAP_BYTES' | 'GW_MAX_MEMORY_BYTES' | 'GW_CACHE_MEMORY_BYTES'
>;

/** `environment`: of the process, as Node reads it; `given`: what it says of these. */
export function processLimits(environment: NodeJS.ProcessEnv, given: Given): ProcessLimits {
  const heapBytes = heapLimitBytes(environment);
  const openFiles = openFilesLimit();
  return {
    heapBytes,
    maxHeapBytes: given.GW_MAX_HEAP_BYTES ?? Math.floor(heapBytes * guardedHeapShare),
    maxMemoryBytes: given.GW_MAX_MEMORY_BYTES ?? Math.floor((containerBytes() ?? 0) * guardedMemoryShare),
    maxConnections: clientConnectionsWithin(openFiles, heapBytes),
    userSockets: userSocketLimitsWithin(openFiles, heapBytes),
    cacheMemoryBytes: given.GW_CACHE_MEMORY_BYTES ?? memoryCacheWithin(heapBytes),
  };
}
