/** A size line with its extensions, or a trailer field. */
const maxLineBytes = 1024;
/** All trailer fields; they are read and forgotten. */
const maxTrailerBytes = 16 * 1024;
/** Twelve hexadecimal digits are a safe integer. */
const sizeLine =
  /^([0-9A-Fa-f]{1,12})(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"[\x20\x21\x23-\x5b\x5d-\x7e]*"))?)*$/;
const trailerLine = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/;
const [carriageReturn, lineFeed] = [0x0d, 0x0a];

/**
 * The chunked coding (RFC 9112 section 7.1), in any split and in one spelling only: lines end in CRLF, sizes are bare
 * hexadecimal.
 *
 * `size` → `data` → `data-end` → `size` … → `trailer` → `complete`; `failed` from anywhere.
 */
export class ChunkedBody {
  state: 'size' | 'data' | 'data-end' | 'trailer' | 'complete' | 'failed' = 'size';
  #line = '';
  #left = 0;
  #trailerBytes = 0;

  /** Hands out the data in slices of `bytes`; returns how many bytes belong to this body. */
  push(bytes: Buffer, onData: (part: Buffer) => void): number {
    let at = 0;
    while (at < bytes.length && this.state !== 'complete' && this.state !== 'failed') {
      if (this.state !== 'data') {
        at = this.#takeLine(bytes, at);
        continue;
      }
      const end = Math.min(bytes.length, at + this.#left);
      this.#left -= end - at;
      if (this.#left === 0) this.state = 'data-end';
      onData(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end));
      at = end;
    }
    return at;
  }

  /** Gathers a line; the place behind what was taken of it. */
  #takeLine(bytes: Buffer, from: number): number {
    const feed = bytes.indexOf(lineFeed, from);
    const end = feed < 0 ? bytes.length : feed + 1;
    if (this.#line.length + end - from > maxLineBytes) {
      this.state = 'failed';
      return end;
    }
    this.#line += bytes.toString('latin1', from, end);
    if (feed < 0) return end;
    const line = this.#line;
    this.#line = '';
    if (line.charCodeAt(line.length - 2) !== carriageReturn) this.state = 'failed';
    else this.#onLine(line.slice(0, -2));
    return end;
  }

  #onLine(line: string): void {
    if (this.state === 'data-end') this.state = line === '' ? 'size' : 'failed';
    else if (this.state === 'size') this.#onSize(line);
    else if (line === '') this.state = 'complete';
    else {
      this.#trailerBytes += line.length;
      if (this.#trailerBytes > maxTrailerBytes || !trailerLine.test(line)) this.state = 'failed';
    }
  }

  #onSize(line: string): void {
    const digits = sizeLine.exec(line)?.[1];
    if (digits === undefined) {
      this.state = 'failed';
      return;
    }
    this.#left = Number.parseInt(digits, 16);
    this.state = this.#left === 0 ? 'trailer' : 'data';
  }
}
