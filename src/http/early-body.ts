import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { ByteBuffer } from '../core/byte-buffer.ts';
import { isBodyComing } from './linger.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What came of the body while the request had to wait; null for those that never waited. */
    earlyBody: EarlyBody | null;
  }
}

/** As much of a body is taken while its request waits: what Node would keep of it by itself. */
export const earlyBytes = 64 * 1024;

/**
 * Takes what comes of a body that nobody may read yet. Node would keep each HTTP chunk as a Buffer of its own, some
 * 545 bytes of memory for one byte; here the bytes are copied to one place.
 */
export class EarlyBody {
  readonly #raw: IncomingMessage;
  readonly #bytes = new ByteBuffer();
  #isFull = false;
  #isWhole = false;

  constructor(raw: IncomingMessage) {
    this.#raw = raw;
    raw.on('data', this.#onData);
    raw.on('end', this.#onEnd);
  }

  /** What has come so far, and whether that is all of it. The rest is the caller's, who listens already. */
  take(): { readonly bytes: Buffer; readonly isWhole: boolean } {
    this.#raw.removeListener('data', this.#onData);
    this.#raw.removeListener('end', this.#onEnd);
    if (this.#isFull) this.#raw.socket.removeListener('resume', this.#pause).resume();
    this.#isFull = false;
    return { bytes: this.#bytes.release(), isWhole: this.#isWhole };
  }

  readonly #onEnd = (): void => {
    this.#isWhole = true;
  };

  readonly #onData = (chunk: Buffer): void => {
    this.#bytes.append(chunk);
    if (this.#isFull || this.#bytes.length < earlyBytes) return;
    this.#isFull = true;
    // The socket and not the message, whose own buffer would fill with chunks; and again whenever the message asks
    // its socket for more, which it does after every chunk.
    this.#raw.socket.on('resume', this.#pause);
    this.#pause();
  };

  readonly #pause = (): void => {
    this.#raw.socket.pause();
  };
}

/** To be called when a request has to wait before its body may be read. */
export function gatherEarly(request: FastifyRequest): void {
  if (request.earlyBody === null && isBodyComing(request.raw)) request.earlyBody = new EarlyBody(request.raw);
}

/** A body that nobody will read is thrown away as it comes. */
export function dropBody(raw: IncomingMessage): void {
  if (isBodyComing(raw)) raw.resume();
}
