import { largestBigint } from '../../core/largest-bigint.ts';

/** Postgres counts from 2000, we from 1970. */
const epochMicros = 946_684_800_000_000;
const twoTo32 = 2 ** 32;
const largestInt4 = 2 ** 31 - 1;
const largestSafe = BigInt(Number.MAX_SAFE_INTEGER);
const jsonbVersion = 1;
/** What a typical row takes, with its attempts; more room is made where it does not do. */
const bytesPerRow = 1024;
/** Texts of a row are ids and names; up to this length a look at each character costs less than the call of a copy. */
const shortText = 40;
const lastAscii = 127;

const dash = 45;
const noNibble = 255;
/** By character code. */
const nibbles = new Uint8Array(128).fill(noNibble);
for (let digit = 0; digit < 16; digit += 1) nibbles[digit.toString(16).charCodeAt(0)] = digit;

/**
 * Composite values in the binary form of Postgres: an array of rows, written value by value. The server reads it for a
 * third of what JSON costs it. Throws RangeError for what a type cannot hold; text with NUL is the server's to refuse.
 */
export class BinaryRows {
  #bytes: Buffer;
  #at = 0;
  #rowAt = 0;

  /** `type`: the oid of the composite type. */
  constructor(type: number, rows: number) {
    this.#bytes = Buffer.allocUnsafe(rows * bytesPerRow);
    // One dimension, no nulls, its length, from 1.
    for (const word of [1, 0, type, rows, 1]) this.#word(word);
  }

  begin(columns: number): void {
    this.#rowAt = this.#at;
    this.#word(0);
    this.#word(columns);
  }

  end(): void {
    this.#lengthAt(this.#rowAt);
  }

  finish(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  /** Of the value that follows. */
  type(oid: number): void {
    this.#word(oid);
  }

  none(): void {
    this.#word(-1);
  }

  boolean(value: boolean): void {
    this.#word(1);
    this.#byte(value ? 1 : 0);
  }

  int4(value: number): void {
    if (!Number.isInteger(value) || Math.abs(value) > largestInt4) throw new RangeError(`no int4: ${value}`);
    this.#word(4);
    this.#word(value);
  }

  int8(value: number | bigint): void {
    this.#word(8);
    if (typeof value === 'bigint' && (value > largestSafe || value < -largestSafe)) {
      this.#bigint(value);
      return;
    }
    const number = Number(value);
    if (!Number.isSafeInteger(number)) throw new RangeError(`no int8: ${value}`);
    this.#word(Math.floor(number / twoTo32));
    this.#word(number);
  }

  /** Microseconds since 1970. */
  instant(micros: number): void {
    this.int8(micros - epochMicros);
  }

  uuid(text: string): void {
    this.#word(16);
    this.#reserve(text.length);
    let pair = 0;
    let digits = 0;
    let seen = 0;
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      if (code === dash) continue;
      const nibble = nibbles[code] ?? noNibble;
      pair = ((pair & 15) << 4) | nibble;
      digits += 1;
      seen |= nibble;
      if (digits % 2 === 0) this.#bytes[this.#at++] = pair;
    }
    if (digits !== 32 || seen > 15) throw new RangeError('no uuid');
  }

  text(text: string): void {
    const start = this.#at;
    this.#word(0);
    this.#characters(text);
    this.#lengthAt(start);
  }

  /** `json`: its text. */
  jsonb(json: string): void {
    const start = this.#at;
    this.#word(0);
    this.#byte(jsonbVersion);
    this.#characters(json);
    this.#lengthAt(start);
  }

  #characters(text: string): void {
    this.#reserve(text.length * 3);
    if (text.length <= shortText && this.#ascii(text)) this.#at += text.length;
    else this.#at += this.#bytes.write(text, this.#at);
  }

  /** Writes it where the next value begins; false: it has another character, and nothing counts as written. */
  #ascii(text: string): boolean {
    const bytes = this.#bytes;
    const at = this.#at;
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      if (code > lastAscii) return false;
      bytes[at + index] = code;
    }
    return true;
  }

  #bigint(value: bigint): void {
    if (value > largestBigint || value < -largestBigint) throw new RangeError(`no int8: ${value}`);
    this.#reserve(8);
    this.#at = this.#bytes.writeBigInt64BE(value, this.#at);
  }

  #byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = value;
  }

  #word(value: number): void {
    this.#reserve(4);
    this.#put(value, this.#at);
    this.#at += 4;
  }

  #lengthAt(start: number): void {
    this.#put(this.#at - start - 4, start);
  }

  #put(value: number, at: number): void {
    const bytes = this.#bytes;
    bytes[at] = value >>> 24;
    bytes[at + 1] = value >>> 16;
    bytes[at + 2] = value >>> 8;
    bytes[at + 3] = value;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.#at + bytes));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}
