import type { ServerResponse } from 'node:http';

const lineEnd = '\r\n';
const lineEndBytes = Buffer.from(lineEnd);
const lastChunk = `0${lineEnd}${lineEnd}`;
/** A copy costs less than the four parts that it spares, each a write of its own to the socket, up to about this. */
const mostCopiedBytes = 4096;

/**
 * The body of a stream in the chunked coding (RFC 9112 7.1), where its client was told that it comes so: a chunk is one
 * write. Node makes four of each, gathered on the way: 0.4 to 1 of the 6 µs that an event alone takes.
 */
export class ChunkedWriter {
  readonly #response: ServerResponse;
  /** False for clients that know no chunks: their body ends with its connection. */
  readonly #isChunked: boolean;

  /** The head of `response` was written just now; `isChunked`: it says that the body comes in chunks. */
  constructor(response: ServerResponse, isChunked: boolean) {
    this.#response = response;
    this.#isChunked = isChunked;
  }

  /** False when the client reads too slowly. */
  write(bytes: Buffer | string): boolean {
    const response = this.#response;
    const length = Buffer.byteLength(bytes);
    // A chunk without bytes would be the last.
    if (!this.#isChunked || length === 0) return response.write(bytes);
    const size = length.toString(16) + lineEnd;
    if (typeof bytes === 'string') return response.write(size + bytes + lineEnd);
    if (length <= mostCopiedBytes) return response.write(chunkOf(size, bytes));
    response.write(size, 'latin1');
    response.write(bytes);
    return response.write(lineEndBytes);
  }

  /** The last bytes, which are text, and a clean end. */
  end(text: string): void {
    if (!this.#isChunked) {
      this.#response.end(text);
      return;
    }
    const length = Buffer.byteLength(text);
    const chunk = length === 0 ? '' : length.toString(16) + lineEnd + text + lineEnd;
    this.#response.end(chunk + lastChunk);
  }
}

function chunkOf(size: string, bytes: Buffer): Buffer {
  const chunk = Buffer.allocUnsafe(size.length + bytes.length + lineEnd.length);
  for (let at = 0; at < size.length; at += 1) chunk[at] = size.charCodeAt(at);
  chunk.set(bytes, size.length);
  chunk.set(lineEndBytes, size.length + bytes.length);
  return chunk;
}
