/** Who waits, by owner: one of each owner after the other, so that a crowd of one keeps nobody else out. */
export class FairQueue<Item> {
  /** In the order in which owners have their turns. */
  readonly #byOwner = new Map<string, Set<Item>>();

  add(owner: string, item: Item): void {
    const items = this.#byOwner.get(owner);
    if (items === undefined) this.#byOwner.set(owner, new Set([item]));
    else items.add(item);
  }

  /** False: it is not there any more. */
  remove(owner: string, item: Item): boolean {
    const items = this.#byOwner.get(owner);
    if (items?.delete(item) !== true) return false;
    if (items.size === 0) this.#byOwner.delete(owner);
    return true;
  }

  /** The oldest of the owner whose turn it is; null when nobody waits. */
  take(): Item | null {
    for (const [owner, items] of this.#byOwner) {
      this.#byOwner.delete(owner);
      for (const item of items) {
        items.delete(item);
        if (items.size > 0) this.#byOwner.set(owner, items);
        return item;
      }
    }
    return null;
  }
}
