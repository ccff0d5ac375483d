import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { endWhenRead, passForUpgrade } from '../connections/node-internals.ts';
import { answerParserError } from '../connections/parser-errors.ts';

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

/** Who takes a body as it comes, each chunk in the turn in which it was parsed. */
export interface BodyReader {
  onBytes(chunk: Buffer): void;
  onWhole(): void;
  /** Its client has left, or its connection was cut; nothing comes after it. */
  onGone(error: Error | null): void;
}

/**
 * What has become of the body of a message.
 *
 *   coming  the stream has it, or whoever reads it
 *   cut     its chunks were too tiny: none of it is taken any more
 *   read    a reader has had its end
 *
 * coming → cut or read. To a reader a body that is cut is lost, whatever comes behind it.
 */
type BodyState = 'coming' | 'cut' | 'read';

/**
 * A request that is cut once its body comes in chunks that cost many times what they bring. On a connection that is
 * parsed no further it passes for an upgrade that nobody takes: Node then lets go of its parser and of the connection.
 */
export class MeasuredMessage extends IncomingMessage {
  #chunks = 0;
  #bytes = 0;
  #body: BodyState = 'coming';
  #reader: BodyReader | null = null;

  static {
    // Node then lets go of the message, with all that its client sent.
    endWhenRead(MeasuredMessage, (message) => message.#body === 'read');
  }

  constructor(socket: MarkedSocket) {
    super(socket);
    if (socket[unparsed] === true) passForUpgrade(this);
  }

  /**
   * Hands the body to `reader`, past the stream, whose buffer, events and turns take 8 µs for the one chunk that nearly
   * every body is; what the stream has of it goes first. Null: what still comes is the stream's.
   */
  readBy(reader: BodyReader | null): void {
    this.#reader = reader;
    if (reader === null) return;
    // A message that was asked for its bytes is not emptied by Node when its answer is out.
    for (let chunk = this.read(); chunk !== null; chunk = this.read()) reader.onBytes(chunk as Buffer);
    if (this.complete) this.#end();
  }

  /** Called by Node for every chunk, and at the end of the body, whoever reads it, or nobody. */
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    const reader = this.#reader;
    if (chunk === null) return reader === null ? super.push(null) : this.#end();
    if (this.#isTooTiny(chunk.length)) {
      if (this.#body === 'coming') this.#cut();
      return false;
    }
    if (reader === null) return super.push(chunk, encoding);
    reader.onBytes(chunk);
    return true;
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const reader = this.#reader;
    this.#reader = null;
    reader?.onGone(error);
    super._destroy(error, callback);
  }

  #end(): true {
    const reader = this.#reader;
    this.#reader = null;
    if (this.#body === 'cut') reader?.onGone(null);
    else {
      this.#body = 'read';
      reader?.onWhole();
    }
    return true;
  }

  #isTooTiny(bytes: number): boolean {
    this.#chunks += 1;
    this.#bytes += bytes;
    const isCut = this.#body === 'cut';
    if (isCut || this.#chunks <= mostTinyChunks) return isCut;
    return (
      this.#bytes < leastMeanChunkBytes * this.#chunks && this.headers['transfer-encoding'] !== undefined
    );
  }

  #cut(): void {
    this.#body = 'cut';
    const error = Object.assign(new Error('The body comes in tiny chunks.'), { code: 'GW_TINY_CHUNKS' });
    answerParserError(error, this.socket);
    // What still comes costs as much: it is not read.
    this.socket.destroySoon();
  }
}

/** What the API's listener makes of every request. */
export function measured(raw: IncomingMessage): MeasuredMessage {
  if (raw instanceof MeasuredMessage) return raw;
  throw new TypeError('A body is read on the API listener only.');
}
