import { randomInt } from 'node:crypto';
import { slotOf, slots } from '../../core/shared-room.ts';

/**
 * How much of what lies in the spool is whose, since it was last empty: whoever has more in it than is left for all
 * others waits until it is taken, so that one who fills it fast ends chat for himself.
 */
export class SpoolShares {
  readonly #seed = randomInt(2 ** 31);
  readonly #bySlot = new Float64Array(slots);

  note(userId: string, bytes: number): void {
    (this.#bySlot[slotOf(userId, this.#seed)] as number) += bytes;
  }

  isSpent(userId: string, leftBytes: number): boolean {
    return (this.#bySlot[slotOf(userId, this.#seed)] as number) > leftBytes;
  }

  /** The spool is empty again. */
  forget(): void {
    this.#bySlot.fill(0);
  }
}
