import type { FileHandle } from 'node:fs/promises';
import type { Disk } from './disk.ts';

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
  readonly #disk: Disk;
  #hasRemains = false;

  private constructor(path: string, file: FileHandle, disk: Disk) {
    this.path = path;
    this.#file = file;
    this.#disk = disk;
  }

  /** Rejects when the file exists or cannot be made. */
  static async create(path: string, disk: Disk): Promise<SegmentWriter> {
    return new SegmentWriter(path, await disk.open(path, 'wx', 0o600), disk);
  }

  /** Appends all of `data`, or rejects and leaves the segment as it was, as far as the disk lets us. */
  async append(data: Buffer): Promise<void> {
    await this.#clean();
    this.#hasRemains = true;
    try {
      for (let done = 0; done < data.length; ) done += await this.#write(data, done);
      await this.#mustBeThere();
    } catch (error) {
      await this.#clean().catch(() => {});
      throw error;
    }
    this.#hasRemains = false;
    this.bytes += data.length;
  }

  /** Rejects while the disk takes nothing; leaves the segment as it was. */
  async trial(): Promise<void> {
    await this.#clean();
    this.#hasRemains = true;
    try {
      await this.#write(Buffer.alloc(trialBytes, '\n'), 0);
      await this.#mustBeThere();
    } finally {
      await this.#clean();
    }
  }

  /** Returns how many bytes were written. */
  async #write(data: Buffer, from: number): Promise<number> {
    const { bytesWritten } = await this.#disk.do(() =>
      this.#file.write(data, from, data.length - from, this.bytes + from),
    );
    return bytesWritten;
  }

  async #clean(): Promise<void> {
    if (!this.#hasRemains) return;
    await this.#disk.do(() => this.#file.truncate(this.bytes));
    this.#hasRemains = false;
  }

  /** A file that has no name any more takes what is written all the same. */
  async #mustBeThere(): Promise<void> {
    this.isGone = (await this.#disk.do(() => this.#file.stat())).nlink === 0;
    if (this.isGone) throw new Error(`${this.path} was removed`);
  }

  async close(): Promise<void> {
    await this.#disk.close(this.#file);
  }
}
