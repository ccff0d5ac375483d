interface Waiting {
  readonly line: string;
  readonly resolve: (kept: boolean) => void;
}

/** What the lines are for. */
export interface LineFile {
  /** Returns how many of the lines, from the first one on, are in the file. */
  write(lines: readonly string[]): Promise<number>;
  /** Rejects while the disk takes nothing. */
  trial(): Promise<void>;
}

/** Lines on their way into a file: one write for all that wait, and the next one behind it, as long as any wait. */
export class LineQueue {
  readonly #file: LineFile;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;
  /** To be done as soon as no write is under way, and before the next one. */
  readonly #between: (() => void)[] = [];
  /** Why the last write failed; null: it did not. */
  refusal: string | null = null;

  constructor(file: LineFile) {
    this.#file = file;
  }

  get isWriting(): boolean {
    return this.#writing !== null;
  }

  /** Resolves to true once the line lies in the file; false without room, or when the disk refuses. Never rejects. */
  add(line: string): Promise<boolean> {
    return new Promise((resolve) => {
      this.#waiting.push({ line, resolve });
      this.#writing ??= this.#writeWaiting();
    });
  }

  /** Does `step` while no write is under way: under load there is hardly a moment without one. */
  between<T>(step: () => T): Promise<T> {
    if (this.#writing === null) return Promise.resolve(step());
    return new Promise((resolve) => this.#between.push(() => resolve(step())));
  }

  /** After a write that failed: finds out whether the disk takes one again. Never rejects. */
  async retry(): Promise<void> {
    // A write that is under way finds out by itself.
    if (this.#writing !== null || this.refusal === null) return;
    const trial = this.#try(() => this.#file.trial());
    this.#writing = trial.then(() => this.#writeWaiting());
    await trial;
  }

  async #writeWaiting(): Promise<void> {
    for (;;) {
      for (const step of this.#between.splice(0)) step();
      if (this.#waiting.length === 0) break;
      const batch = this.#waiting;
      this.#waiting = [];
      const lines = batch.map(({ line }) => line);
      const kept = await this.#try(() => this.#file.write(lines));
      for (const [index, { resolve }] of batch.entries()) resolve(kept !== null && index < kept);
    }
    this.#writing = null;
  }

  /** Null when it fails. */
  async #try<T>(work: () => Promise<T>): Promise<T | null> {
    try {
      const result = await work();
      this.refusal = null;
      return result;
    } catch (error) {
      this.refusal = error instanceof Error ? error.message : String(error);
      return null;
    }
  }
}
