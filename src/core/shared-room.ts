/**
 * Who holds how much is kept in this many slots, by a hash that nobody outside can guess. Two owners of one slot
 * share its share, which hurts neither; a map that requests enter and leave would cost every request more.
 */
export const slots = 4096;

/** The slot of an owner, an account's id or a stranger's address: FNV-1a from a random `seed` of 31 bits. */
export function slotOf(owner: string, seed: number): number {
  let hash = seed;
  for (let at = 0; at < owner.length; at += 1) hash = Math.imul(hash ^ owner.charCodeAt(at), 0x01000193);
  return (hash >>> 7) % slots;
}

/** Room for bytes in memory, in which nobody may hold more than is left for all others. */
export class SharedRoom {
  readonly limitBytes: number;
  heldBytes = 0;
  readonly #bySlot = new Float64Array(slots);

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  heldBy(slot: number): number {
    return this.#bySlot[slot] as number;
  }

  /** True when the holder of `slot` may take `more`. Half of the room is the most that one alone can hold. */
  hasRoom(slot: number, more: number): boolean {
    const total = this.heldBytes + more;
    return this.heldBy(slot) + more <= this.limitBytes - total;
  }

  /** Books `by` bytes, fewer than none when they are given back; asks nobody. */
  move(slot: number, by: number): void {
    this.heldBytes += by;
    (this.#bySlot[slot] as number) += by;
  }
}
