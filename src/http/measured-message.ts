import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { answerParserError } from './odd-requests.ts';

/**
 * A chunk costs Node's parser two microseconds, however little it holds: a read of 64 KiB is eleven thousand chunks of
 * one byte, and a turn of the event loop may read megabytes of each connection. So many may be as small as their
 * sender likes; clients that write a body as it is made (a line, a flushed buffer) stay far above the mean.
 */
export const mostTinyChunks = 4_096;
export const leastMeanChunkBytes = 16;

const unparsed = Symbol('unparsed');
type MarkedSocket = Socket & { [unparsed]?: true };

/**
 * For a connection that is cut: nothing more of it is parsed. One read of 64 KB can hold 1,800 requests, and what Node
 * makes of each stays until its connection has closed, behind this turn of the event loop, in which hundreds of
 * connections may have such a read.
 */
export function parseNoFurther(socket: MarkedSocket): void {
  socket[unparsed] = true;
}

/**
 * A request that is cut once its body comes in chunks that cost many times what they bring. On a connection that is
 * parsed no further it passes for an upgrade that nobody takes: Node then lets go of its parser and of the connection.
 */
export class MeasuredMessage extends IncomingMessage {
  #chunks = 0;
  #bytes = 0;
  #isCut = false;

  constructor(socket: MarkedSocket) {
    super(socket);
    if (socket[unparsed] !== true) return;
    // Node itself says that it is none.
    Object.defineProperty(this, 'upgrade', { get: () => true, set: () => undefined });
  }

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
