import { digitOf } from './hex-digits.ts';

/** Wire types of protobuf. */
const wire = { varint: 0, fixed64: 1, delimited: 2, fixed32: 5 } as const;

/** Longer texts are written by Node: a loop of ours costs 1 ns a character, the way there and back 60. */
const maxLoopLength = 64;
const twoTo32 = 2 ** 32;

/** A tag of one byte, which all fields of OTLP but one have. */
const tagOf = (field: number, type: number): number => (field << 3) | type;

/** A protobuf message as it grows, every length in as few bytes as it takes. */
export class ProtobufBytes {
  #bytes: Buffer;
  length = 0;

  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
  }

  /** What has been written; its own memory only until the next write. */
  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  /** Begins a message within this one. `reserved`: how many bytes its length will likely take. */
  open(field: number, reserved = 1): number {
    this.#reserve(2 + reserved);
    this.#bytes[this.length] = tagOf(field, wire.delimited);
    this.length += 1 + reserved;
    return this.length;
  }

  /** Ends the message that `open` said begins there. */
  close(start: number, reserved = 1): void {
    const length = this.length - start;
    const size =
      length < 0x80 ? 1 : length < 0x4000 ? 2 : length < 0x20_0000 ? 3 : length < 0x1000_0000 ? 4 : 5;
    if (size !== reserved) {
      this.#reserve(size);
      this.#bytes.copyWithin(start - reserved + size, start, this.length);
    }
    const end = this.length + size - reserved;
    this.length = start - reserved;
    this.#varint(length);
    this.length = end;
  }

  /** A whole number within 64 bits, negative ones as two's complement. */
  integer(field: number, value: number): void {
    this.#reserve(11);
    this.#bytes[this.length++] = tagOf(field, wire.varint);
    if (value >= 0 && value < twoTo32) this.#varint(value);
    else this.#longVarint(value);
  }

  double(field: number, value: number): void {
    this.#reserve(9);
    this.#bytes[this.length] = tagOf(field, wire.fixed64);
    this.#bytes.writeDoubleLE(value, this.length + 1);
    this.length += 9;
  }

  /** `field` may be 16 or more: its tag takes two bytes then. */
  fixed32(field: number, value: number): void {
    this.#reserve(7);
    this.#varint(tagOf(field, wire.fixed32));
    this.#word(value);
  }

  fixed64(field: number, high: number, low: number): void {
    this.#reserve(9);
    this.#bytes[this.length++] = tagOf(field, wire.fixed64);
    this.#word(low);
    this.#word(high);
  }

  text(field: number, text: string): void {
    const { length } = text;
    // Three bytes a UTF-16 unit at most.
    this.#reserve(6 + length * 3);
    const bytes = this.#bytes;
    bytes[this.length++] = tagOf(field, wire.delimited);
    if (length > maxLoopLength) {
      this.#longText(text);
      return;
    }
    const start = this.length + 1;
    for (let index = 0; index < length; index += 1) {
      const code = text.charCodeAt(index);
      if (code > 0x7f) {
        this.#longText(text);
        return;
      }
      bytes[start + index] = code;
    }
    bytes[start - 1] = length;
    this.length = start + length;
  }

  /** Bytes that are given in hexadecimal digits, of either case. */
  hex(field: number, digits: string): void {
    const size = digits.length >> 1;
    this.#reserve(6 + size);
    const bytes = this.#bytes;
    bytes[this.length++] = tagOf(field, wire.delimited);
    this.#varint(size);
    for (let index = 0; index < size; index += 1) {
      const high = digitOf(digits.charCodeAt(index * 2));
      bytes[this.length++] = (high << 4) | digitOf(digits.charCodeAt(index * 2 + 1));
    }
  }

  /** Fields that have been written elsewhere. */
  append(fields: Uint8Array): void {
    this.#reserve(fields.length);
    this.#bytes.set(fields, this.length);
    this.length += fields.length;
  }

  #reserve(size: number): void {
    const needed = this.length + size;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
    larger.set(this.written);
    this.#bytes = larger;
  }

  #longText(text: string): void {
    this.#varint(Buffer.byteLength(text));
    this.length += this.#bytes.write(text, this.length);
  }

  #word(value: number): void {
    const bytes = this.#bytes;
    bytes[this.length++] = value;
    bytes[this.length++] = value >>> 8;
    bytes[this.length++] = value >>> 16;
    bytes[this.length++] = value >>> 24;
  }

  #varint(value: number): void {
    let rest = value >>> 0;
    while (rest > 0x7f) {
      this.#bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.length++] = rest;
  }

  #longVarint(value: number): void {
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest > 0x7fn) {
      this.#bytes[this.length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.#bytes[this.length++] = Number(rest);
  }
}
