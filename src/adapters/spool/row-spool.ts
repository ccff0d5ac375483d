import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ReplayProgress } from './replay-progress.ts';
import { SegmentWriter } from './segment-writer.ts';
import { setAside } from './set-aside.ts';
import { encodeSpoolLine } from './spool-line.ts';
import type { SpoolLock } from './spool-lock.ts';
import { lockFolder } from './spool-lock.ts';
import type { NumberedSegment, Segment, SpoolBatch } from './spool-segment.ts';
import { findSegments, segmentName } from './spool-segment.ts';

/** Told of a slot or segment that cannot be read or removed: what lies in it stays there. */
export type OnBroken = (path: string, error: unknown) => void;

/** An eighth is kept for requests that were already running when the spool filled up. */
const reserveShare = 8;
/** Small enough that replay frees space step by step. */
const segmentBytes = 8 * 1024 * 1024;

interface Waiting {
  readonly line: string;
  readonly resolve: (kept: boolean) => void;
}

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
  readonly #folder: string;
  readonly #maxBytes: number;
  readonly #progress: ReplayProgress;
  #lock: SpoolLock;
  /** Oldest first; the writer's own, if any, is the last. */
  readonly #segments: Segment[] = [];
  /** Could not be read, or not removed: out of the way of the others, and of `bytes`. */
  readonly #stuck = new Set<Segment>();
  #writer: SegmentWriter | null = null;
  #nextNumber: number;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;
  #broken = false;
  #closed = false;

  private constructor(
    folder: string,
    maxBytes: number,
    lock: SpoolLock,
    segments: readonly NumberedSegment[],
    progress: ReplayProgress,
  ) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
    this.#lock = lock;
    this.#progress = progress;
    this.#segments.push(...segments);
    this.#nextNumber = (segments.at(-1)?.number ?? 0) + 1;
  }

  /** Takes one slot with all it contains; null where a live process holds it. Rejects when it cannot be used. */
  static async openSlot(
    folder: string,
    maxBytes: number,
    progress = new ReplayProgress(),
  ): Promise<RowSpool | null> {
    const lock = await lockFolder(folder);
    if (lock === null) return null;
    try {
      return new RowSpool(folder, maxBytes, lock, await findSegments(folder), progress);
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
    return this.#writing === null && this.bytes === 0;
  }

  /** True while new work should be refused: little room is left, or the disk takes no more. */
  get full(): boolean {
    return this.#broken || this.bytes >= this.#maxBytes - this.#maxBytes / reserveShare;
  }

  /** Resolves to true once the row lies in the file; false when there is no room or the disk refuses. Never rejects. */
  append(row: string): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#waiting.push({ line: encodeSpoolLine(row), resolve });
      this.#writing ??= this.#writeWaiting();
    });
  }

  /** One write for all that wait, as long as any wait. */
  async #writeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const kept = await this.#write(batch).catch(() => {
        this.#broken = true;
        return 0;
      });
      for (const [index, { resolve }] of batch.entries()) resolve(index < kept);
    }
    this.#writing = null;
  }

  /** Returns how many of the lines are in the file; what did not fit is left out. */
  async #write(batch: readonly Waiting[]): Promise<number> {
    const room = this.#maxBytes - this.bytes;
    let bytes = 0;
    let fitting = 0;
    const text: Buffer[] = [];
    for (const { line } of batch) {
      const data = Buffer.from(line, 'utf8');
      if (bytes + data.length > room) break;
      bytes += data.length;
      fitting += 1;
      text.push(data);
    }
    if (fitting === 0) return 0;
    const writer = await this.#writable();
    await writer.append(Buffer.concat(text, bytes));
    this.#broken = false;
    return fitting;
  }

  async #writable(): Promise<SegmentWriter> {
    if (this.#writer !== null && !this.#writer.isGone && this.#writer.bytes < segmentBytes)
      return this.#writer;
    await this.#finishSegment();
    const path = join(this.#folder, segmentName(this.#nextNumber));
    this.#nextNumber += 1;
    const writer = await SegmentWriter.create(path).catch(async (error: unknown) => {
      if (!isMissing(error)) throw error;
      await this.#makeFolder();
      return SegmentWriter.create(path);
    });
    this.#writer = writer;
    this.#segments.push(writer);
    return writer;
  }

  /** Somebody has removed it, and its lock with it: whoever makes it has the slot. */
  async #makeFolder(): Promise<void> {
    const lock = await lockFolder(this.#folder);
    if (lock === null) throw new Error(`${this.#folder} was removed, and made by another process`);
    this.#lock.release();
    this.#lock = lock;
  }

  async #finishSegment(): Promise<void> {
    const writer = this.#writer;
    this.#writer = null;
    if (writer?.isGone === true) this.#forget(writer);
    await writer?.close();
  }

  async #untilWritten(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  /** After the disk refused a write: finds out whether it takes one again. Never rejects. */
  async retry(): Promise<void> {
    await this.#untilWritten();
    if (!this.#broken || this.#closed) return;
    this.#writing = this.#tryWrite().finally(() => {
      this.#writing = this.#waiting.length > 0 ? this.#writeWaiting() : null;
    });
    await this.#writing;
  }

  async #tryWrite(): Promise<void> {
    try {
      await (await this.#writable()).trial();
      this.#broken = false;
    } catch {
      // still refused
    }
  }

  /**
   * Hands out every row that lay in the spool when it was called, oldest first, and frees each segment
   * once `take` has taken all of it. Rejects with what `take` rejects with; nothing is lost then, and the batch
   * is handed out again, so `take` must be idempotent. Lines that are no rows are set aside with their batch. A segment
   * that cannot be read or removed is told of, holds up no other, and is tried again `stuckToo`. Not to be run twice at
   * once.
   */
  async replay(
    take: (batch: SpoolBatch) => Promise<void>,
    onBroken: OnBroken,
    stuckToo: boolean,
  ): Promise<void> {
    const takeWhole = async (batch: SpoolBatch): Promise<void> => {
      await take(batch).catch((cause: unknown) => Promise.reject(new NotTaken('not taken', { cause })));
      // Not before: it would be done with each attempt.
      await this.setAside(batch.bad);
    };
    await this.#untilWritten();
    // Taken in the same turn in which no write is running: later appends go to a new segment.
    const finished = [...(stuckToo ? this.#stuck : []), ...this.#segments];
    await this.#finishSegment();
    for (const segment of finished) {
      try {
        await this.#progress.handOut(segment, takeWhole);
        await rm(segment.path, { force: true });
      } catch (error) {
        if (error instanceof NotTaken) throw error.cause;
        onBroken(segment.path, error);
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

  /** Keeps rows that cannot be stored for a person to look at. Never rejects. */
  readonly setAside = (lines: readonly (Buffer | string)[]): Promise<void> => setAside(this.#folder, lines);

  /** Every whole row that can be read and was not taken, oldest first, a batch at a time; they stay where they are. */
  async *rows(onBroken: OnBroken): AsyncGenerator<readonly string[]> {
    await this.#untilWritten();
    for (const segment of [...this.#stuck, ...this.#segments]) {
      try {
        for await (const batch of this.#progress.untaken(segment)) yield batch.rows;
      } catch (error) {
        onBroken(segment.path, error);
      }
    }
  }

  /** Waits for appends in progress, then lets another process have the slot. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#untilWritten();
    await this.#finishSegment();
    this.#lock.release();
  }
}
