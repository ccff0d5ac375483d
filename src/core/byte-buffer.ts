const initialCapacity = 1024;
/** Storage beyond this is given back once used, so that one long line does not fatten an idle stream. */
const keptCapacity = 16 * 1024;
const noBytes = Buffer.alloc(0);

/**
 * Bytes that arrive in pieces. Doubles as it grows, so that a line cut at every byte still costs linear time, and
 * holds copies: a piece of one byte kept as it came would hold on to the whole read it was a part of.
 */
export class ByteBuffer {
  #bytes: Buffer = noBytes;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** What it takes of the memory, in bytes. */
  get capacity(): number {
    return this.#bytes.length;
  }

  append(piece: Buffer): void {
    this.#makeRoom(piece.length);
    piece.copy(this.#bytes, this.#length);
    this.#length += piece.length;
  }

  /** All bytes, without a copy; valid until the next append. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** UTF-16, so that a character cut in two between texts is whole again when read. */
  appendUtf16(text: string): void {
    this.#makeRoom(2 * text.length);
    this.#length += this.#bytes.write(text, this.#length, 'utf16le');
  }

  /** What `appendUtf16` has gathered. */
  readUtf16(): string {
    return this.#bytes.toString('utf16le', 0, this.#length);
  }

  /** All bytes, without a copy; the buffer is empty afterwards and has given its storage away. */
  release(): Buffer {
    const released = this.#bytes.subarray(0, this.#length);
    this.#bytes = noBytes;
    this.#length = 0;
    return released;
  }

  #makeRoom(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    // Not from the slab that all share: what is kept for long would keep it.
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2, initialCapacity));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }

  /** A copy of all bytes; the buffer is empty afterwards. */
  take(): Buffer {
    const taken = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    if (this.#bytes.length > keptCapacity) this.#bytes = noBytes;
    return taken;
  }
}
