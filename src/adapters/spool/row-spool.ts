import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SegmentWriter } from './segment-writer.ts';
import { setAside } from './set-aside.ts';
import { encodeSpoolLine } from './spool-line.ts';
import type { SpoolLock } from './spool-lock.ts';
import { tryLock } from './spool-lock.ts';
import type { SpoolBatch } from './spool-segment.ts';
import { readSegment } from './spool-segment.ts';

/** Told of a slot or segment that cannot be read: what lies in it stays there. */
export type OnBroken = (path: string, error: unknown) => void;

/** An eighth is kept for requests that were already running when the spool filled up. */
const reserveShare = 8;
/** Small enough that replay frees space step by step. */
const segmentBytes = 8 * 1024 * 1024;
const batchRows = 200;
const segmentName = /^(\d{10})\.ndjson$/;

interface Segment {
  readonly path: string;
  readonly bytes: number;
}

interface Waiting {
  readonly line: string;
  readonly resolve: (kept: boolean) => void;
}

/** What `take` rejected with, told apart from a segment that cannot be read. */
class NotTaken extends Error {
  constructor(options: { cause: unknown }) {
    super('rows were not taken', options);
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

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
  readonly #lock: SpoolLock;
  /** Oldest first; the writer's own, if any, is the last. */
  readonly #segments: Segment[] = [];
  #writer: SegmentWriter | null = null;
  #nextNumber = 1;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;
  #broken = false;
  #closed = false;

  private constructor(folder: string, maxBytes: number, lock: SpoolLock) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
    this.#lock = lock;
  }

  /** Takes one slot with all it contains; null where a live process holds it. Rejects when it cannot be used. */
  static async openSlot(folder: string, maxBytes: number): Promise<RowSpool | null> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const lock = tryLock(join(folder, 'lock'));
    if (lock === null) return null;
    const spool = new RowSpool(folder, maxBytes, lock);
    try {
      await spool.#findSegments();
      return spool;
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  async #findSegments(): Promise<void> {
    for (const name of (await readdir(this.#folder)).sort()) {
      const number = segmentName.exec(name)?.[1];
      if (number === undefined) continue;
      const path = join(this.#folder, name);
      this.#segments.push({ path, bytes: (await stat(path)).size });
      this.#nextNumber = Number(number) + 1;
    }
  }

  /** Bytes not replayed yet. */
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
    if (this.#writer !== null && this.#writer.bytes < segmentBytes) return this.#writer;
    await this.#finishSegment();
    const name = `${String(this.#nextNumber).padStart(10, '0')}.ndjson`;
    this.#nextNumber += 1;
    const writer = await SegmentWriter.create(join(this.#folder, name));
    this.#writer = writer;
    this.#segments.push(writer);
    return writer;
  }

  async #finishSegment(): Promise<void> {
    const writer = this.#writer;
    this.#writer = null;
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
   * once `take` has taken all of it. Rejects with what `take` rejects with; nothing is lost then, and rows
   * of the segment in work are handed out again, so `take` must be idempotent. A segment that cannot be read
   * stays, is told of, and holds up no other. Not to be run twice at once.
   */
  async replay(take: (batch: SpoolBatch) => Promise<void>, onBroken: OnBroken): Promise<void> {
    await this.#untilWritten();
    // Taken in the same turn in which no write is running: later appends go to a new segment.
    const finished = [...this.#segments];
    await this.#finishSegment();
    for (const segment of finished) {
      try {
        await this.#handOut(segment, take);
        await rm(segment.path, { force: true });
      } catch (error) {
        if (error instanceof NotTaken) throw error.cause;
        onBroken(segment.path, error);
        if (!isMissing(error)) continue;
      }
      this.#segments.splice(this.#segments.indexOf(segment), 1);
    }
  }

  async #handOut(segment: Segment, take: (batch: SpoolBatch) => Promise<void>): Promise<void> {
    for await (const batch of readSegment(segment.path, batchRows)) {
      await this.setAside(batch.bad);
      await take(batch).catch((cause: unknown) => {
        throw new NotTaken({ cause });
      });
    }
  }

  /** Keeps rows that cannot be stored for a person to look at. Never rejects. */
  setAside(lines: readonly (Buffer | string)[]): Promise<void> {
    return setAside(this.#folder, lines);
  }

  /** Every whole row in the spool, oldest first, without taking it out. */
  async *rows(): AsyncGenerator<string> {
    await this.#untilWritten();
    for (const segment of [...this.#segments]) {
      for await (const batch of readSegment(segment.path, batchRows)) yield* batch.rows;
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
