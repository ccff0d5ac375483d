import { slots } from './shared-room.ts';

/**
 * Of all places, for the first one of whoever holds none: a dozen accounts that take all they can get leave it, and
 * each further one takes one place of it.
 */
const reservedShare = 1 / 4;

/**
 * Places for calls. Whoever holds fewer than are free gets one more, so nobody takes the last ones; what is reserved
 * for those who hold none does not count as free for the others. Nobody loses a place: who holds most is refused first.
 */
export class FairPlaces {
  readonly #limit: number;
  readonly #reserved: number;
  readonly #perHolder: number;
  readonly #open: number;
  readonly #bySlot = new Uint32Array(slots);
  #taken = 0;

  /**
   * `perHolder`: the most that one may hold, however many are free. `openShare`: while fewer places than this share are
   * taken, whoever asks gets one.
   */
  constructor(limit: number, perHolder: number, openShare = 0) {
    this.#limit = limit;
    this.#reserved = Math.floor(limit * reservedShare);
    this.#perHolder = perHolder;
    this.#open = Math.floor(limit * openShare);
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes one for the holder of `slot` (`slotOf`); false, and nothing changes, when there is none for it. */
  take(slot: number): boolean {
    const held = this.#bySlot[slot] as number;
    const free = this.#limit - this.#taken - (held === 0 ? 0 : this.#reserved);
    if (held >= this.#perHolder || (this.#taken >= this.#open && held >= free)) return false;
    this.#bySlot[slot] = held + 1;
    this.#taken += 1;
    return true;
  }

  give(slot: number): void {
    (this.#bySlot[slot] as number) -= 1;
    this.#taken -= 1;
  }
}
