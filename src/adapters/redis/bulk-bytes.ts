/** On the way at once, of all users and of one: a third of a second on 100 Mbit/s. */
const mostBytes = 4 * 1024 * 1024;
const mostOfOneUser = mostBytes / 2;

/**
 * The bytes of long values that are on the way to and from a store. What there is no room for is not moved: an answer
 * that is not stored, or a miss, costs one user a call; a line of them would cost all who wait behind it.
 */
export class BulkBytes {
  readonly #byUser = new Map<string, number>();
  #total = 0;

  /** Does `work`, which moves so many bytes of a user's; null, without it, where there is no room. Any goes alone. */
  async move<Result>(
    userId: string,
    bytes: number,
    work: () => Promise<Result | null>,
  ): Promise<Result | null> {
    const own = this.#byUser.get(userId) ?? 0;
    if (own > 0 && own + bytes > mostOfOneUser) return null;
    if (this.#total > 0 && this.#total + bytes > mostBytes) return null;
    this.#add(userId, bytes);
    try {
      return await work();
    } finally {
      this.#add(userId, -bytes);
    }
  }

  #add(userId: string, bytes: number): void {
    this.#total += bytes;
    const own = (this.#byUser.get(userId) ?? 0) + bytes;
    if (own === 0) this.#byUser.delete(userId);
    else this.#byUser.set(userId, own);
  }
}
