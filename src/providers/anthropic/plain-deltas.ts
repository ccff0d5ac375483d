import { isUtf8 } from 'node:buffer';
import { frameEndBytes } from '../../core/answer/sse-frame.ts';
import { ownCopy } from '../../core/own-copy.ts';
import { holdsAt } from '../byte-scan.ts';
import { chunkFrame } from '../chunk-frame.ts';

/** The deltas that are nothing but text: what holds it in the vendor's event, and in a chunk. */
export const plainKinds = {
  text_delta: { from: 'text', to: 'content' },
  thinking_delta: { from: 'thinking', to: 'reasoning_content' },
} as const;
type PlainKind = keyof typeof plainKinds;

const quote = 0x22;
const backslash = 0x5c;
const closingBrace = 0x7d;
const space = 0x20;
const lastAscii = 0x7f;

/** By character code: what stands behind a backslash in the one spelling that `JSON.stringify` has, too. */
const isShortEscape = new Uint8Array(lastAscii + 1);
for (const byte of Buffer.from('"\\bfnrt')) isShortEscape[byte] = 1;

/**
 * Whole events of one block whose text is spelled as JSON spells it here, too. They are told by their bytes, and their
 * text goes between those of our chunks: a tenth of the time that parsing each and writing it anew takes. Whatever is
 * spelled otherwise is for the parser, which makes the same bytes of it.
 */
export class PlainDeltas {
  /** Of the run that was translated last: the place behind it, and the UTF-8 bytes of its text. */
  end = 0;
  textBytes = 0;
  readonly #index: number;
  readonly #kind: PlainKind;
  readonly #maxEventBytes: number;
  /** An event up to its text. */
  readonly #head: Buffer;
  /** A chunk around its text. */
  readonly #before: Buffer;
  readonly #after: Buffer;
  /** Of the run: where its texts begin and end, in turn, and how many bytes of JSON they have. */
  readonly #texts: number[] = [];
  #jsonBytes = 0;

  private constructor(index: number, kind: PlainKind, start: string, maxEventBytes: number) {
    const { from, to } = plainKinds[kind];
    const event = JSON.stringify({ type: 'content_block_delta', index, delta: { type: kind, [from]: '' } });
    const head = event.slice(0, event.lastIndexOf('""') + 1);
    const chunk = chunkFrame(start, { [to]: '' }, null);
    const textAt = chunk.lastIndexOf('""') + 1;
    this.#index = index;
    this.#kind = kind;
    this.#maxEventBytes = maxEventBytes;
    // As long as the stream is open, in memory of their own.
    this.#head = ownCopy(Buffer.from(`event: content_block_delta\ndata: ${head}`));
    this.#before = ownCopy(Buffer.from(chunk.slice(0, textAt)));
    this.#after = ownCopy(Buffer.from(chunk.slice(textAt)));
  }

  /** `start`: of all chunks of the stream. Null where there are no such events. */
  static of(
    index: unknown,
    kind: PlainKind,
    start: string | null,
    maxEventBytes: number,
  ): PlainDeltas | null {
    if (start === null || typeof index !== 'number' || !Number.isSafeInteger(index)) return null;
    return new PlainDeltas(index, kind, start, maxEventBytes);
  }

  isOf(index: unknown, kind: PlainKind): boolean {
    return index === this.#index && kind === this.#kind;
  }

  /** The plain events that begin at `from`, as chunks; null: the next one is none. `from` is between two events. */
  translate(chunk: Buffer, from: number): Buffer | null {
    this.#find(chunk, from);
    const texts = this.#texts;
    if (texts.length === 0) return null;
    const [before, after] = [this.#before, this.#after];
    const around = (texts.length / 2) * (before.length + after.length);
    const frames = Buffer.allocUnsafe(around + this.#jsonBytes);
    let at = 0;
    for (let one = 0; one < texts.length; one += 2) {
      frames.set(before, at);
      at += before.length;
      at += chunk.copy(frames, at, texts[one], texts[one + 1]);
      frames.set(after, at);
      at += after.length;
    }
    return frames;
  }

  #find(chunk: Buffer, from: number): void {
    this.#texts.length = 0;
    this.#jsonBytes = 0;
    this.textBytes = 0;
    this.end = from;
    while (holdsAt(chunk, this.end, this.#head)) {
      const start = this.end + this.#head.length;
      const text = plainText(chunk, start);
      const end = text === null ? -1 : eventEnd(chunk, start + text.jsonBytes);
      if (text === null || end === -1 || end - this.end > this.#maxEventBytes) return;
      this.#texts.push(start, start + text.jsonBytes);
      this.#jsonBytes += text.jsonBytes;
      this.textBytes += text.textBytes;
      this.end = end;
    }
  }
}

interface PlainText {
  readonly jsonBytes: number;
  /** Without its escapes. */
  readonly textBytes: number;
}

/** The text whose inside begins at `start`, up to its quote; null when it is none, or empty, or to be spelled anew. */
function plainText(chunk: Buffer, start: number): PlainText | null {
  let escapes = 0;
  let isAscii = true;
  let at = start;
  for (; chunk[at] !== quote; at += 1) {
    const byte = chunk[at] ?? 0;
    if (byte < space) return null;
    if (byte > lastAscii) isAscii = false;
    if (byte !== backslash) continue;
    at += 1;
    escapes += 1;
    if (isShortEscape[chunk[at] ?? 0] !== 1) return null;
  }
  const jsonBytes = at - start;
  // What is no UTF-8 the parser replaces.
  if (jsonBytes === 0 || !(isAscii || isUtf8(chunk.subarray(start, at)))) return null;
  return { jsonBytes, textBytes: jsonBytes - escapes };
}

/** The place behind an event whose text ends at `from`; -1 when there is more to it. The vendor pads it with spaces. */
function eventEnd(chunk: Buffer, from: number): number {
  if (chunk[from + 1] !== closingBrace) return -1;
  let at = from + 2;
  while (chunk[at] === space) at += 1;
  if (chunk[at] !== closingBrace || !holdsAt(chunk, at + 1, frameEndBytes)) return -1;
  return at + 1 + frameEndBytes.length;
}
