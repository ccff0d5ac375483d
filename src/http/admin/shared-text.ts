/** Whoever asked; its connection may be gone by the time the text is made. */
interface TextAsker {
  readonly destroyed: boolean;
}

/**
 * A text that is costly to make and that anybody may ask for. All who wait share one, and between two the process has
 * time for others, however many ask. As bytes, of which all answers on their way hold the same.
 */
export class SharedText {
  readonly #make: () => string | Promise<string>;
  readonly #rest: () => Promise<unknown>;
  #coming: Promise<Buffer> | null = null;
  #rested: Promise<unknown> = Promise.resolve();
  #askers: TextAsker[] = [];

  /** `rest`: resolves when the next one may be made after one that is done. */
  constructor(make: () => string | Promise<string>, rest: () => Promise<unknown>) {
    this.#make = make;
    this.#rest = rest;
  }

  /** The one that is being made or comes next; empty for askers that have all left. */
  for(asker: TextAsker): Promise<Buffer> {
    this.#askers.push(asker);
    this.#coming ??= this.#makeNext();
    return this.#coming;
  }

  async #makeNext(): Promise<Buffer> {
    await this.#rested;
    try {
      if (this.#askers.every(({ destroyed }) => destroyed)) return Buffer.alloc(0);
      return Buffer.from(await this.#make());
    } finally {
      this.#askers = [];
      this.#coming = null;
      this.#rested = this.#rest();
    }
  }
}
