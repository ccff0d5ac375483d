import { maxSealedLineBytes } from './sealed-line.ts';

const lineFeed = 10;

/** Cuts what comes in pieces into lines, and holds one line at most: of a longer one no more than shows that it is. */
export class LineSplitter {
  #rest: Buffer = Buffer.alloc(0);

  /** Bytes of a line that has not ended. */
  get rest(): number {
    return this.#rest.length;
  }

  /** The lines that end in this piece, without their line feeds; one that is too long comes before its end. */
  *push(piece: Buffer): Generator<Buffer> {
    let from = 0;
    for (let end = piece.indexOf(lineFeed); end >= 0; end = piece.indexOf(lineFeed, from)) {
      const part = piece.subarray(from, end);
      yield this.#rest.length === 0 ? part : Buffer.concat([this.#rest, part]);
      this.#rest = Buffer.alloc(0);
      from = end + 1;
    }
    const part = piece.subarray(from);
    this.#rest = this.#rest.length === 0 ? Buffer.from(part) : Buffer.concat([this.#rest, part]);
    if (this.#rest.length > maxSealedLineBytes) {
      yield this.#rest;
      this.#rest = Buffer.alloc(0);
    }
  }
}
