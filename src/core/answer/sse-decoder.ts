import { ByteBuffer } from '../byte-buffer.ts';
import { ownCopy } from '../own-copy.ts';

/** One dispatched event. `data` holds the bytes as they came, several data lines joined by LF. */
export interface SseEvent {
  /** The `event` field; empty when there was none. */
  readonly type: string;
  readonly data: Buffer;
}

const lf = 0x0a;
const cr = 0x0d;
const space = 0x20;
const colon = 0x3a;
const lineFeed = Buffer.from('\n');
/** Data lines of one event: JSON comes in one, and indented JSON of this many lines in no stream. */
const maxDataLines = 4096;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);
/** `data` read as one big-endian number: cheaper than a comparison call on the path of every line. */
const dataName = 0x64617461;
const eventName = Buffer.from('event');

/**
 * Incremental decoder of `text/event-stream` (WHATWG HTML 9.2.6): bytes in any cut, LF, CRLF or CR, comments,
 * one leading byte order mark, one optional space after the colon; `id` and `retry` are read over. It works
 * on bytes, so a character cut by the network needs no care, and U+2028 is no line end.
 *
 * One event, its comments and field names included, may have `maxEventBytes` bytes without its line ends, and
 * 4096 data lines; a larger one sets `overflowed`, and everything after it is ignored.
 */
export class SseDecoder {
  readonly #maxEventBytes: number;
  /** The line that is not complete yet. */
  readonly #partial = new ByteBuffer();
  /** The data of an event of one line, as it came. */
  #onlyLine: Buffer | null = null;
  /** All data, joined, once there are more lines. */
  readonly #joined = new ByteBuffer();
  #dataLines = 0;
  #type = '';
  /** Bytes of the event so far, without the partial line. */
  #eventBytes = 0;
  #afterCr = false;
  #firstLine = true;
  #overflowed = false;

  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  get overflowed(): boolean {
    return this.#overflowed;
  }

  /** What its unfinished event takes of the memory. */
  get heldBytes(): number {
    const lines = this.#joined.capacity + (this.#onlyLine?.length ?? 0);
    return this.#partial.capacity + lines + 2 * this.#type.length;
  }

  /** True between events: nothing is held back, so the next byte begins a line of a new event. */
  get idle(): boolean {
    return this.#eventBytes === 0 && this.#partial.length === 0 && !this.#afterCr && !this.#firstLine;
  }

  /** The events that `chunk` completes, in order. Their data may share memory with `chunk`. */
  push(chunk: Buffer): SseEvent[] {
    const events: SseEvent[] = [];
    let start = 0;
    if (this.#afterCr && chunk.length > 0) {
      this.#afterCr = false;
      if (chunk[0] === lf) start = 1;
    }
    // Each is looked for again only behind the last one: a read of line ends of the other sort costs one search.
    let nextCr = chunk.indexOf(cr, start);
    let nextLf = chunk.indexOf(lf, start);
    while (start < chunk.length && !this.#overflowed) {
      if (nextLf !== -1 && nextLf < start) nextLf = chunk.indexOf(lf, start);
      if (nextCr !== -1 && nextCr < start) nextCr = chunk.indexOf(cr, start);
      const end = nextCr !== -1 && (nextLf === -1 || nextCr < nextLf) ? nextCr : nextLf;
      if (end === -1) {
        this.#hold(chunk.subarray(start));
        break;
      }
      const event = this.#line(chunk.subarray(start, end));
      if (event !== null) events.push(event);
      start = end + 1;
      if (end !== nextCr) continue;
      if (start === chunk.length) this.#afterCr = true;
      else if (chunk[start] === lf) start += 1;
    }
    // Kept until the next read, a line of ten bytes would hold on to the whole read or slab that it is a part of.
    const line = this.#onlyLine;
    if (line !== null && line.buffer.byteLength > 2 * line.length) this.#onlyLine = ownCopy(line);
    return events;
  }

  /**
   * The body has ended: the event that lacks its closing blank line, or null. The standard would throw it
   * away; servers exist that end with a bare `data: [DONE]`.
   */
  flush(): SseEvent | null {
    if (this.#overflowed) return null;
    if (this.#partial.length > 0) {
      const event = this.#line(Buffer.alloc(0));
      if (event !== null) return event;
    }
    return this.#dispatch();
  }

  #hold(piece: Buffer): void {
    if (this.#eventBytes + this.#partial.length + piece.length > this.#maxEventBytes) {
      this.#overflowed = true;
      return;
    }
    this.#partial.append(piece);
  }

  /** Takes the rest of one line, without its end; returns the event if the line was blank. */
  #line(rest: Buffer): SseEvent | null {
    let line = rest;
    if (this.#partial.length > 0) {
      this.#hold(rest);
      if (this.#overflowed) return null;
      line = this.#partial.take();
    }
    this.#eventBytes += line.length;
    if (this.#eventBytes > this.#maxEventBytes) {
      this.#overflowed = true;
      return null;
    }
    if (this.#firstLine) {
      this.#firstLine = false;
      if (line.subarray(0, byteOrderMark.length).equals(byteOrderMark)) {
        line = line.subarray(byteOrderMark.length);
      }
    }
    if (line.length === 0) return this.#dispatch();
    this.#field(line);
    return null;
  }

  #field(line: Buffer): void {
    const at = line.indexOf(colon);
    const nameLength = at === -1 ? line.length : at;
    const isData = nameLength === 4 && line.readUInt32BE(0) === dataName;
    const isEvent = !isData && line.subarray(0, nameLength).equals(eventName);
    if (!isData && !isEvent) return;
    let start = at === -1 ? line.length : at + 1;
    if (line[start] === space) start += 1;
    const value = line.subarray(start);
    if (isData) this.#addData(value);
    else this.#type = value.toString('utf8');
  }

  #addData(line: Buffer): void {
    this.#dataLines += 1;
    if (this.#dataLines === 1) {
      this.#onlyLine = line;
      return;
    }
    if (this.#dataLines > maxDataLines) {
      this.#overflowed = true;
      return;
    }
    if (this.#onlyLine !== null) this.#joined.append(this.#onlyLine);
    this.#onlyLine = null;
    this.#joined.append(lineFeed);
    this.#joined.append(line);
  }

  #dispatch(): SseEvent | null {
    const type = this.#type;
    const lines = this.#dataLines;
    const only = this.#onlyLine;
    this.#onlyLine = null;
    this.#dataLines = 0;
    this.#type = '';
    this.#eventBytes = 0;
    if (lines === 0) return null;
    return { type, data: only ?? this.#joined.take() };
  }
}
