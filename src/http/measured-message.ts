import { IncomingMessage } from 'node:http';
import { answerParserError } from './odd-requests.ts';

/**
 * A chunk costs Node's parser two microseconds, however little it holds: a read of 64 KiB is eleven thousand chunks of
 * one byte, and a turn of the event loop may read megabytes of each connection. So many may be as small as their
 * sender likes; clients that write a body as it is made (a line, a flushed buffer) stay far above the mean.
 */
export const mostTinyChunks = 4_096;
export const leastMeanChunkBytes = 16;

/** A request that is cut once its body comes in chunks that cost many times what they bring. */
export class MeasuredMessage extends IncomingMessage {
  #chunks = 0;
  #bytes = 0;
  #isCut = false;

  /** Called by Node for every chunk, whoever reads the body, or nobody. */
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null || !this.#isTooTiny(chunk.length)) return super.push(chunk, encoding);
    if (!this.#isCut) this.#cut();
    return false;
  }

  #isTooTiny(bytes: number): boolean {
    this.#chunks += 1;
    this.#bytes += bytes;
    if (this.#chunks <= mostTinyChunks || this.#isCut) return this.#isCut;
    return (
      this.#bytes < leastMeanChunkBytes * this.#chunks && this.headers['transfer-encoding'] !== undefined
    );
  }

  #cut(): void {
    this.#isCut = true;
    const error = Object.assign(new Error('The body comes in tiny chunks.'), { code: 'GW_TINY_CHUNKS' });
    answerParserError(error, this.socket);
    // What still comes costs as much: it is not read.
    this.socket.destroySoon();
  }
}
