import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';

/** More than the rest of a block, so that a full disk shows. */
const trialBytes = 64 * 1024;

/** The spool segment that is being written. One caller at a time. */
export class SegmentWriter {
  readonly path: string;
  /** Length of what was written whole; the file may hold the remains of a failed write behind it. */
  bytes = 0;
  /** The file was removed by somebody: what is written goes nowhere. */
  isGone = false;
  readonly #file: FileHandle;

  private constructor(path: string, file: FileHandle) {
    this.path = path;
    this.#file = file;
  }

  /** Rejects when the file exists or cannot be made. */
  static async create(path: string): Promise<SegmentWriter> {
    return new SegmentWriter(path, await open(path, 'wx', 0o600));
  }

  /** Appends all of `data`, or rejects and leaves the segment as it was, as far as the disk lets us. */
  async append(data: Buffer): Promise<void> {
    try {
      for (let done = 0; done < data.length; ) {
        const { bytesWritten } = await this.#file.write(data, done, data.length - done, this.bytes + done);
        done += bytesWritten;
      }
      await this.#mustBeThere();
    } catch (error) {
      await this.#file.truncate(this.bytes).catch(() => {});
      throw error;
    }
    this.bytes += data.length;
  }

  /** Rejects while the disk takes nothing; leaves the segment as it was. */
  async trial(): Promise<void> {
    try {
      await this.#file.write(Buffer.alloc(trialBytes, '\n'), 0, trialBytes, this.bytes);
      await this.#mustBeThere();
    } finally {
      await this.#file.truncate(this.bytes);
    }
  }

  /** A file that has no name any more takes what is written all the same. */
  async #mustBeThere(): Promise<void> {
    this.isGone = (await this.#file.stat()).nlink === 0;
    if (this.isGone) throw new Error(`${this.path} was removed`);
  }

  async close(): Promise<void> {
    await this.#file.close().catch(() => {});
  }
}
