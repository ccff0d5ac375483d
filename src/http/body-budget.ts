import { getHeapStatistics } from 'node:v8';

/** Bodies up to this size are not counted: they are too small to matter, and must not be refused for large ones. */
export const smallBodyBytes = 64 * 1024;
/**
 * What large bodies may take of the heap's limit. A body of n bytes costs up to some 8 n on its way: as bytes, as
 * text of two bytes per character, parsed, and written again for the vendor. The other half is for the rest.
 */
const heapShare = 1 / 16;

/** What one request holds of the budget. */
export interface BodyHold {
  /** Makes it hold `bytes` in all; false, and nothing changes, when there is no room for more. */
  grow(bytes: number): boolean;
  release(): void;
}

/** Bytes of large request bodies that the process has in memory, from their first byte to the end of the answer. */
export class BodyBudget {
  readonly limitBytes: number;
  #heldBytes = 0;

  constructor(limitBytes: number = Math.floor(getHeapStatistics().heap_size_limit * heapShare)) {
    this.limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  open(): BodyHold {
    let held = 0;
    return {
      grow: (bytes) => {
        const others = this.#heldBytes - held;
        // Alone, any body within the body limit may come in, whatever the size of the heap.
        if (others > 0 && others + bytes > this.limitBytes) return false;
        this.#heldBytes = others + bytes;
        held = bytes;
        return true;
      },
      release: () => {
        this.#heldBytes -= held;
        held = 0;
      },
    };
  }
}
