import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { ByteBuffer } from '../../core/byte-buffer.ts';
import { isBodyComing } from '../answers/linger.ts';
import type { EarlyHold } from './body-budget.ts';
import type { BodyReader, MeasuredMessage } from './measured-message.ts';
import { measured } from './measured-message.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What came of the body while the request had to wait; null for those that never waited. */
    earlyBody: EarlyBody | null;
  }
}

/** As much of a body is taken while its request waits: what Node would keep of it by itself. */
export const earlyBytes = 64 * 1024;

/**
 * What has become of a body.
 *
 *   coming  there may be more of it
 *   whole   that is all of it
 *   lost    there was no room for what came: it is gone, and with it the request, once it is known who sent it
 *
 * coming → whole, and either → lost.
 */
export type EarlyState = 'coming' | 'whole' | 'lost';

/** What has come of a body. */
export interface EarlyBytes {
  readonly state: EarlyState;
  readonly bytes: Buffer;
}

/**
 * Takes what comes of a body that nobody may read yet. Node would keep each HTTP chunk as a Buffer of its own, some
 * 545 bytes of memory for one byte; here the bytes are copied to one place.
 */
export class EarlyBody implements BodyReader {
  readonly #message: MeasuredMessage;
  readonly #bytes = new ByteBuffer();
  #hold: EarlyHold | null = null;
  #state: EarlyState = 'coming';
  /** Its connection is not read: there is enough of it, or no room. */
  #isPaused = false;

  constructor(raw: IncomingMessage) {
    this.#message = measured(raw);
    this.#message.readBy(this);
  }

  /** From now on it takes of this room; before, whoever let it wait counts for it. */
  countIn(hold: EarlyHold): void {
    this.#hold = hold;
    if (!hold.grow(this.#bytes.length)) this.#lose();
  }

  /** What has come so far. The rest is the caller's: until it reads it, the message keeps it. */
  take(): EarlyBytes {
    if (this.#state !== 'whole') this.#message.readBy(null);
    if (this.#isPaused) this.#message.socket.removeListener('resume', this.#pause).resume();
    this.#isPaused = false;
    this.#hold?.release();
    return { state: this.#state, bytes: this.#bytes.release() };
  }

  onWhole(): void {
    if (this.#state === 'coming') this.#state = 'whole';
  }

  /** Whoever waits for the request learns it from the message. */
  onGone(): void {}

  onBytes(chunk: Buffer): void {
    if (this.#state === 'lost') return;
    if (this.#hold?.grow(chunk.length) === false) {
      this.#lose();
      return;
    }
    this.#bytes.append(chunk);
    if (this.#bytes.length >= earlyBytes) this.#stop();
  }

  #lose(): void {
    this.#state = 'lost';
    this.#bytes.release();
    this.#hold?.release();
    this.#stop();
  }

  #stop(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    // Whoever else has to do with the socket may make it go on.
    this.#message.socket.on('resume', this.#pause);
    this.#pause();
  }

  readonly #pause = (): void => {
    this.#message.socket.pause();
  };
}

/** To be called when a request has to wait before its body may be read. */
export function gatherEarly(request: FastifyRequest): void {
  if (request.earlyBody === null && isBodyComing(request.raw)) request.earlyBody = new EarlyBody(request.raw);
}

/** The same while its account is looked up: what comes takes of the room for such requests, which `open` hands out. */
export function gatherUnknown(request: FastifyRequest, open: () => EarlyHold): void {
  gatherEarly(request);
  request.earlyBody?.countIn(open());
}

/** A body that nobody will read is thrown away as it comes. */
export function dropBody(raw: IncomingMessage): void {
  if (isBodyComing(raw)) raw.resume();
}
