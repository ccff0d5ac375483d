/** An entry that knows its place in the one list that it is in; -1 outside of it. */
export interface Placed {
  place: number;
}

/**
 * Entries in no order, of which each is found by the place it keeps. A Set or Map that requests enter and leave would
 * now and then leave its old table behind, which names the requests of that moment and the next table: what has died
 * of it keeps all of them alive through every scavenge until the next full collection. Measured at a quarter of all
 * CPU of a JSON request, 40 µs.
 */
export class PlacedList<Entry extends Placed> {
  readonly #entries: Entry[] = [];

  get length(): number {
    return this.#entries.length;
  }

  /** Not to be kept: it changes. Who removes entries while walking through it begins at the end. */
  get entries(): readonly Entry[] {
    return this.#entries;
  }

  add(entry: Entry): void {
    entry.place = this.#entries.push(entry) - 1;
  }

  /** Does nothing to an entry that is not in the list. */
  remove(entry: Entry): void {
    if (entry.place < 0) return;
    const last = this.#entries.pop() as Entry;
    if (last !== entry) {
      this.#entries[entry.place] = last;
      last.place = entry.place;
    }
    entry.place = -1;
  }
}
