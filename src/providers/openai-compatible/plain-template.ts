import { frameStartBytes } from '../../core/answer/sse-frame.ts';
import { ownCopy } from '../../core/own-copy.ts';
import { holdsAt } from '../byte-scan.ts';

/** Delta fields whose text is passed on as bytes; a refusal is too rare for that. */
const plainFields = ['content', 'reasoning_content', 'reasoning'] as const;
export type TextField = (typeof plainFields)[number];

/** Padding that OpenAI puts on each chunk against guesses from its length. */
const paddingKey = /"obfuscation"\s*:\s*"/;

/**
 * Bytes around the text that are kept for as long as the stream is open: a chunk has some 300 of them, and one with a
 * megabyte of a field that nobody knows would be kept with each stream. Such chunks are parsed, one by one.
 */
const maxTemplateLength = 4096;

const quote = 0x22;
const backslash = 0x5c;
const letterU = 0x75;
const lineFeed = 0x0a;
const firstPrintable = 0x20;
const hexDigits = 4;
/** UTF-16: the first units that take two and three bytes of UTF-8; a pair of surrogates takes four. */
const [firstOfTwo, firstOfThree, firstSurrogate, lastSurrogate] = [0x80, 0x800, 0xd800, 0xdfff];
/** Begins the only escape that can stand for a letter. */
const letterEscape = '\\u';

function tableOf(characters: string): Uint8Array {
  const table = new Uint8Array(256);
  for (const byte of Buffer.from(characters)) table[byte] = 1;
  return table;
}

const isEscape = tableOf('"\\/bfnrtu');
/** Of each byte that is a hexadecimal digit its value, of any other one more than any has. */
const noDigit = 16;
const digits = new Uint8Array(256).fill(noDigit);
for (let value = 0; value < noDigit; value += 1)
  for (const spelled of [value.toString(16), value.toString(16).toUpperCase()])
    digits[spelled.charCodeAt(0)] = value;

/** The unit of UTF-16 that four digits name; -1 where they are none. */
function unitOf(bytes: Uint8Array, from: number): number {
  let unit = 0;
  for (let at = from; at < from + hexDigits; at += 1) {
    const digit = digits[bytes[at] ?? 0] ?? noDigit;
    if (digit === noDigit) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

/** Bytes that such a unit takes in UTF-8. */
function utf8Bytes(unit: number): number {
  if (unit < firstOfThree) return unit < firstOfTwo ? 1 : 2;
  return unit >= firstSurrogate && unit <= lastSurrogate ? 2 : 3;
}

/** Position of the quote that closes the JSON string whose inside begins at `from`; -1 when it is no string. */
function closingQuote(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) return at;
    if (byte < firstPrintable) return -1;
    if (byte !== backslash) continue;
    at += 1;
    const escaped = bytes[at] ?? 0;
    if (isEscape[escaped] !== 1) return -1;
    if (escaped !== letterU) continue;
    if (unitOf(bytes, at + 1) === -1) return -1;
    at += hexDigits;
  }
  return -1;
}

/** UTF-8 bytes of the JSON string inside these bounds, without its escapes. */
function textBytesOf(bytes: Uint8Array, from: number, end: number): number {
  let count = end - from;
  for (let at = from; at < end; at += 1) {
    if (bytes[at] !== backslash) continue;
    at += 1;
    count -= 1;
    if (bytes[at] !== letterU) continue;
    count += utf8Bytes(unitOf(bytes, at + 1)) - 1 - hexDigits;
    at += hexDigits;
  }
  return count;
}

/** What stands before the text, for each field. */
const textStarts = Object.fromEntries(
  plainFields.map((field) => [field, new RegExp(`"${field}"\\s*:\\s*"`, 'g')]),
) as Readonly<Record<TextField, RegExp>>;

/** Where the only match ends; -1 where there is none, or more than one. */
function onlyMatchEnd(text: string, pattern: RegExp): number {
  pattern.lastIndex = 0;
  pattern.test(text);
  const end = pattern.lastIndex;
  // A pattern that finds nothing is at the beginning again.
  return end > 0 && !pattern.test(text) ? end : -1;
}

/** The one field of a delta that carries text, all others being null; null when the delta is not that plain. */
export function plainTextField(delta: Readonly<Record<string, unknown>>): TextField | null {
  let found: TextField | null = null;
  for (const name of Object.keys(delta)) {
    if (delta[name] === null) continue;
    const field = plainFields.find((known) => known === name);
    if (field === undefined || found !== null || typeof delta[name] !== 'string') return null;
    found = field;
  }
  return found;
}

/**
 * What the plain content deltas of one stream look like around their text. The chunks of a stream differ only
 * in that one string (and in padding), so once one was parsed and found plain, the next ones are known to be
 * valid and plain by comparing bytes: no parse, no copy, about a tenth of the time of `JSON.parse`.
 */
export class PlainTemplate {
  /** Of the text in what it was found in: UTF-8. */
  textBytes = 0;
  readonly #head: Uint8Array;
  readonly #tail: Uint8Array;
  /** What follows the padding; null when the chunks carry none. */
  readonly #end: Uint8Array | null;
  readonly #maxEventBytes: number;
  /** Of the event looked at last. */
  #lastTextBytes = 0;

  private constructor(head: string, tail: string, end: string | null, maxEventBytes: number) {
    // As long as the stream is open, in memory of their own.
    const bytes = ownCopy(Buffer.from(head + tail + (end ?? ''), 'latin1'));
    this.#head = bytes.subarray(0, head.length);
    this.#tail = bytes.subarray(head.length, head.length + tail.length);
    this.#end = end === null ? null : bytes.subarray(head.length + tail.length);
    this.#maxEventBytes = maxEventBytes;
  }

  /** `data` was parsed, is passed on unchanged, and its only varying part is the string at `field`. */
  static learn(data: Buffer, field: TextField, maxEventBytes: number): PlainTemplate | null {
    if (data.includes(lineFeed)) return null;
    const text = data.toString('latin1');
    // Inside a JSON string every quote is escaped, so this can match nothing but a key. Another of the same name, which
    // would be the one that counts, can only be there in escapes.
    const start = onlyMatchEnd(text, textStarts[field]);
    const stop = start === -1 ? -1 : closingQuote(data, start);
    if (stop === -1) return null;
    const rest = text.slice(stop);
    const padding = paddingKey.exec(rest);
    const padded = padding === null ? rest.length : padding.index + padding[0].length;
    const paddedEnd = padding === null ? text.length : closingQuote(data, stop + padded);
    if (paddedEnd === -1 || start + padded + text.length - paddedEnd > maxTemplateLength) return null;
    const [head, tail] = [text.slice(0, start), rest.slice(0, padded)];
    const end = padding === null ? null : text.slice(paddedEnd);
    if ([head, tail, end].some((part) => part?.includes(letterEscape))) return null;
    return new PlainTemplate(head, tail, end, maxEventBytes);
  }

  /** Where the whole plain events that begin at `from` end; they are framed as `data: {…}` LF LF. */
  matchingBytes(chunk: Uint8Array, from: number): number {
    let position = from;
    for (;;) {
      const start = position + frameStartBytes.length;
      const end = holdsAt(chunk, position, frameStartBytes) ? this.#match(chunk, start) : -1;
      if (end === -1 || end - position > this.#maxEventBytes) return position;
      if (chunk[end] !== lineFeed || chunk[end + 1] !== lineFeed) return position;
      position = end + 2;
      this.textBytes += this.#lastTextBytes;
    }
  }

  /** True when the data of one event is plain. */
  matches(data: Uint8Array): boolean {
    if (this.#match(data, 0) !== data.length) return false;
    this.textBytes += this.#lastTextBytes;
    return true;
  }

  /** Where the data that begins at `from` ends; -1 when it is not plain. */
  #match(bytes: Uint8Array, from: number): number {
    if (!holdsAt(bytes, from, this.#head)) return -1;
    const textStart = from + this.#head.length;
    const textEnd = closingQuote(bytes, textStart);
    if (textEnd === -1 || !holdsAt(bytes, textEnd, this.#tail)) return -1;
    this.#lastTextBytes = textBytesOf(bytes, textStart, textEnd);
    const tailEnd = textEnd + this.#tail.length;
    if (this.#end === null) return tailEnd;
    const paddingEnd = closingQuote(bytes, tailEnd);
    return paddingEnd !== -1 && holdsAt(bytes, paddingEnd, this.#end) ? paddingEnd + this.#end.length : -1;
  }
}
