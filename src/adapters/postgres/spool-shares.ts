import { randomInt } from 'node:crypto';
import { SharedRoom, slotOf } from '../../core/shared-room.ts';

/**
 * How much of what lies in the spool is whose, since it was last empty: whoever has more in it than is left for all
 * others waits until it is taken, so that one who fills it fast ends chat for himself.
 */
export class SpoolShares {
  readonly #seed = randomInt(2 ** 31);
  readonly #room: SharedRoom;

  constructor(maxBytes: number) {
    this.#room = new SharedRoom(maxBytes);
  }

  note(userId: string, bytes: number): void {
    this.#room.move(slotOf(userId, this.#seed), bytes);
  }

  /** `leftBytes`: of the spool as it is, in which rows of earlier processes may lie. */
  isSpent(userId: string, leftBytes: number): boolean {
    return this.#room.heldBy(slotOf(userId, this.#seed)) > leftBytes;
  }
}
