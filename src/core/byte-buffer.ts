const initialCapacity = 1024;
/** Storage beyond this is given back once used, so that one long line does not fatten an idle stream. */
const keptCapacity = 16 * 1024;

/** Bytes that arrive in pieces. Doubles as it grows, so that a line cut at every byte still costs linear time. */
export class ByteBuffer {
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(piece: Buffer): void {
    const needed = this.#length + piece.length;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2, initialCapacity));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    piece.copy(this.#bytes, this.#length);
    this.#length = needed;
  }

  /** A copy of all bytes; the buffer is empty afterwards. */
  take(): Buffer {
    const taken = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    if (this.#bytes.length > keptCapacity) this.#bytes = Buffer.alloc(0);
    return taken;
  }
}
