import { slots } from './shared-room.ts';

/** Places for calls. Whoever holds fewer than are free gets one more, so nobody takes the last ones. */
export class FairPlaces {
  readonly #limit: number;
  readonly #perHolder: number;
  readonly #bySlot = new Uint32Array(slots);
  #taken = 0;

  /** `perHolder`: the most that one may hold, however many are free. */
  constructor(limit: number, perHolder: number) {
    this.#limit = limit;
    this.#perHolder = perHolder;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes one for the holder of `slot` (`slotOf`); false, and nothing changes, when there is none for it. */
  take(slot: number): boolean {
    const held = this.#bySlot[slot] as number;
    if (held >= this.#perHolder || held >= this.#limit - this.#taken) return false;
    this.#bySlot[slot] = held + 1;
    this.#taken += 1;
    return true;
  }

  give(slot: number): void {
    (this.#bySlot[slot] as number) -= 1;
    this.#taken -= 1;
  }
}
