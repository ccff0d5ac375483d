import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes that live in this process after a collection: heap and buffers. */
export function livingBytes(): number {
  // What a first one frees may hold what a second one finds.
  for (let round = 0; round < 2; round += 1) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/**
 * Has the slab that small Buffers share begun anew, as any traffic does: what is cut from the next one, and kept, keeps
 * all of it.
 */
export function beginSlab(): void {
  for (let taken = 0; taken <= Buffer.poolSize; taken += Buffer.poolSize / 4) {
    Buffer.allocUnsafe(Buffer.poolSize / 4);
  }
}
