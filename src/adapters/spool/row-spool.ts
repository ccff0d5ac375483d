import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Disk } from './disk.ts';
import { DiskHangs } from './disk.ts';
import { LineQueue } from './line-queue.ts';
import type { ReplayProgress } from './replay-progress.ts';
import { SegmentWriter } from './segment-writer.ts';
import { setAside } from './set-aside.ts';
import { encodeSpoolLine } from './spool-line.ts';
import type { SpoolLock } from './spool-lock.ts';
import { lockFolder } from './spool-lock.ts';
import type { NumberedSegment, Segment, SpoolBatch } from './spool-segment.ts';
import { findSegments, removedBySomebody, segmentName } from './spool-segment.ts';

/** Told of a slot or segment that cannot be read or removed, whose rows stay there, and of one somebody removed. */
export type OnBroken = (path: string, error: unknown) => void;

/** An eighth is kept for requests that were already running when the spool filled up. */
const reserveShare = 1 / 8;
/** Small enough that replay frees space step by step. */
const segmentBytes = 8 * 1024 * 1024;

/** What `take` rejected with, told apart from a segment that cannot be read. */
class NotTaken extends Error {}

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

/**
 * Local, bounded store of log rows that Postgres did not take in time. A spool is one folder (`slot-0`,
 * `slot-1`, …) locked by one process; what a dead process left is taken over by whoever gets its lock.
 * In the folder: numbered segments of checksummed lines, the last one being written, and `bad.ndjson`,
 * where torn or refused lines are kept for a person to look at.
 *
 * Appends are not synced to disk: rows survive the death of the process, not that of the node.
 */
export class RowSpool {
  readonly disk: Disk;
  readonly #folder: string;
  readonly #maxBytes: number;
  readonly #progress: ReplayProgress;
  #lock: SpoolLock;
  /** Oldest first; the writer's own, if any, is the last. */
  readonly #segments: Segment[] = [];
  /** Could not be read, or not removed: out of the way of the others, and of `bytes`. */
  readonly #stuck = new Set<Segment>();
  /** While they were written; told of by the next who looks. */
  #removed: Segment[] = [];
  #writer: SegmentWriter | null = null;
  #nextNumber: number;
  readonly #queue: LineQueue;
  #closed = false;

  private constructor(
    folder: string,
    maxBytes: number,
    lock: SpoolLock,
    segments: readonly NumberedSegment[],
    progress: ReplayProgress,
    disk: Disk,
  ) {
    this.disk = disk;
    this.#folder = folder;
    this.#maxBytes = maxBytes;
    this.#lock = lock;
    this.#progress = progress;
    this.#segments.push(...segments);
    this.#nextNumber = (segments.at(-1)?.number ?? 0) + 1;
    this.#queue = new LineQueue({
      write: (lines) => this.#write(lines),
      trial: async () => (await this.#writable()).trial(),
    });
  }

  /** Takes one slot with all it contains; null where a live process holds it. Rejects when it cannot be used. */
  static async openSlot(
    folder: string,
    maxBytes: number,
    progress: ReplayProgress,
    disk: Disk,
  ): Promise<RowSpool | null> {
    const lock = await lockFolder(folder);
    if (lock === null) return null;
    try {
      return new RowSpool(folder, maxBytes, lock, await findSegments(folder), progress, disk);
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** Bytes not replayed yet, of what can be read. */
  get bytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /** Nothing is left to replay, and nothing on its way into a file. */
  get empty(): boolean {
    return !this.#queue.isWriting && this.bytes === 0;
  }

  /** Why the disk took no row when it was last asked; null: it did. */
  get refusal(): string | null {
    return this.#queue.refusal;
  }

  /** True while new work should be refused: little room is left, or the disk takes no more or hangs. */
  get full(): boolean {
    return this.refusal !== null || this.bytes >= this.#maxBytes * (1 - reserveShare);
  }

  /** Resolves to true once the row lies in the file; false without room, or when the disk takes none. Never rejects. */
  append(row: string): Promise<boolean> {
    return this.#closed ? Promise.resolve(false) : this.#queue.add(encodeSpoolLine(row));
  }

  /** Returns how many of the lines are in the file; what did not fit is left out. */
  async #write(lines: readonly string[]): Promise<number> {
    const room = this.#maxBytes - this.bytes;
    let bytes = 0;
    let fitting = 0;
    const text: Buffer[] = [];
    for (const line of lines) {
      const data = Buffer.from(line, 'utf8');
      if (bytes + data.length > room) break;
      bytes += data.length;
      fitting += 1;
      text.push(data);
    }
    if (fitting === 0) return 0;
    const writer = await this.#writable();
    await writer.append(Buffer.concat(text, bytes));
    return fitting;
  }

  async #writable(): Promise<SegmentWriter> {
    if (this.#writer !== null && !this.#writer.isGone && this.#writer.bytes < segmentBytes)
      return this.#writer;
    await this.#takeWriter()?.close();
    const path = join(this.#folder, segmentName(this.#nextNumber));
    this.#nextNumber += 1;
    const writer = await SegmentWriter.create(path, this.disk).catch(async (error: unknown) => {
      if (!isMissing(error)) throw error;
      await this.#makeFolder();
      return SegmentWriter.create(path, this.disk);
    });
    this.#writer = writer;
    this.#segments.push(writer);
    return writer;
  }

  /** Somebody has removed it, and its lock with it: whoever makes it has the slot. */
  async #makeFolder(): Promise<void> {
    const lock = await this.disk.do(
      () => lockFolder(this.#folder),
      (late) => late?.release(),
    );
    if (lock === null) throw new Error(`${this.#folder} was removed, and made by another process`);
    this.#lock.release();
    this.#lock = lock;
  }

  /** Nothing is written to it any more; whoever takes it closes it. */
  #takeWriter(): SegmentWriter | null {
    const writer = this.#writer;
    this.#writer = null;
    if (writer?.isGone !== true) return writer;
    this.#forget(writer);
    if (writer.bytes > 0) this.#removed.push(writer);
    return writer;
  }

  #tellRemoved(onBroken: OnBroken): void {
    for (const segment of this.#removed.splice(0)) onBroken(segment.path, removedBySomebody(segment));
  }

  /** After the disk refused a write: finds out whether it takes one again. Never rejects. */
  async retry(): Promise<void> {
    if (!this.#closed) await this.#queue.retry();
  }

  /**
   * Hands out every row that lay in the spool when it was called, oldest first, and frees each segment
   * once `take` has taken all of it. Rejects with what `take` rejects with; nothing is lost then, and the batch
   * is handed out again, so `take` must be idempotent; lines that are no rows are `take`'s to set aside. A segment that
   * cannot be read or removed is told of, holds up no other, and is tried again `stuckToo`. A disk that hangs ends it,
   * in `take` too, and is asked again the next time. Not to be run twice at once.
   */
  async replay(
    take: (batch: SpoolBatch) => Promise<void>,
    onBroken: OnBroken,
    stuckToo: boolean,
  ): Promise<void> {
    const takeOrSay = (batch: SpoolBatch): Promise<void> =>
      take(batch).catch((cause: unknown) =>
        Promise.reject(cause instanceof DiskHangs ? cause : new NotTaken('not taken', { cause })),
      );
    if (this.disk.hangs) return;
    // Later appends go to a new segment.
    const [finished, writer] = await this.#queue.between(() => {
      const all = [...(stuckToo ? this.#stuck : []), ...this.#segments];
      return [all, this.#takeWriter()] as const;
    });
    await writer?.close();
    this.#tellRemoved(onBroken);
    for (const segment of finished) {
      try {
        await this.#progress.handOut(segment, takeOrSay, this.disk);
        await this.disk.do(() => rm(segment.path, { force: true }));
      } catch (error) {
        if (error instanceof NotTaken) throw error.cause;
        onBroken(segment.path, isMissing(error) ? removedBySomebody(segment) : error);
        if (error instanceof DiskHangs) return;
        this.#forget(segment);
        if (!isMissing(error)) this.#stuck.add(segment);
        continue;
      }
      this.#stuck.delete(segment);
      this.#progress.forget(segment);
      this.#forget(segment);
    }
  }

  #forget(segment: Segment): void {
    const index = this.#segments.indexOf(segment);
    if (index >= 0) this.#segments.splice(index, 1);
  }

  /** Keeps what cannot be stored for a person to look at. Resolves to whether it did; rejects with DiskHangs. */
  readonly setAside = (lines: readonly (Buffer | string)[]): Promise<boolean> =>
    setAside(this.#folder, lines, this.disk);

  /** Every whole row that can be read and was not taken, oldest first, a batch at a time; they stay where they are. */
  async *rows(onBroken: OnBroken): AsyncGenerator<readonly string[]> {
    for (const segment of await this.#queue.between(() => [...this.#stuck, ...this.#segments])) {
      try {
        for await (const batch of this.#progress.untaken(segment, this.disk)) yield batch.rows;
      } catch (error) {
        onBroken(segment.path, isMissing(error) ? removedBySomebody(segment) : error);
      }
    }
    this.#tellRemoved(onBroken);
  }

  /** Waits for appends in progress, then lets another process have the slot. */
  async close(): Promise<void> {
    this.#closed = true;
    const writer = await this.#queue.between(() => this.#takeWriter());
    await writer?.close();
    this.#lock.release();
  }
}
