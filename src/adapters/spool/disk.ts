import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';

/**
 * The longest that one operation may take: milliseconds where the disk has nothing else to do, a second or two where a
 * machine writes all it can. The last byte of an answer waits with its row.
 */
export const diskLimitMs = 5_000;

/** The disk does not answer, or had not when it was last asked. */
export class DiskHangs extends Error {
  constructor() {
    super(`The disk has not answered for ${diskLimitMs} ms.`);
  }
}

/**
 * The disk of the spools. It may hang where another one fails: a network volume, a node's broken one. An operation that
 * takes too long is given up, and until it has ended no other is begun: each would hold one of the four threads that
 * the process has for files and names.
 */
export class Disk {
  #hanging = 0;

  get hangs(): boolean {
    return this.#hanging > 0;
  }

  /**
   * Rejects as the operation does, or with DiskHangs. One that was given up may be done all the same, however late:
   * `onLate` is told of its result then.
   */
  do<T>(operation: () => Promise<T>, onLate: (result: T) => void = () => {}): Promise<T> {
    if (this.hangs) return Promise.reject(new DiskHangs());
    return this.#inTime(operation(), onLate);
  }

  open(path: string, flags: string, mode?: number): Promise<FileHandle> {
    return this.do(
      () => open(path, flags, mode),
      (file) => void this.close(file),
    );
  }

  /** Always begun: a file that stays open is lost. Never rejects. */
  async close(file: FileHandle): Promise<void> {
    await this.#inTime(file.close()).catch(() => {});
  }

  #inTime<T>(running: Promise<T>, onLate: (result: T) => void = () => {}): Promise<T> {
    return new Promise((resolve, reject) => {
      let soon: NodeJS.Immediate | undefined;
      let isLate = false;
      const giveUp = (): void => {
        isLate = true;
        this.#hanging += 1;
        reject(new DiskHangs());
      };
      // A process that had no time for so long may only not have heard of the end yet.
      const limit = setTimeout(() => {
        soon = setImmediate(giveUp);
      }, diskLimitMs);
      const settle = (): void => {
        clearTimeout(limit);
        clearImmediate(soon);
        if (isLate) this.#hanging -= 1;
      };
      running.then(
        (result) => {
          settle();
          if (isLate) onLate(result);
          else resolve(result);
        },
        (error: unknown) => {
          settle();
          reject(error);
        },
      );
    });
  }
}
