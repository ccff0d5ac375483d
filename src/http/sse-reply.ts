import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Client, ClientStream } from '../chat/client-stream.ts';
import type { CancelReason } from '../core/outcome.ts';
import type { ActiveRequest, Life } from './life.ts';

/** Proxies must neither buffer nor store a stream. */
const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-cache',
  'x-accel-buffering': 'no',
} as const;

/**
 * A chat client on its raw response. Writes go past Fastify's pipeline once the stream is open; the raw
 * response alone shows reliably when the client has left.
 */
export class ReplyClient implements Client, ClientStream, ActiveRequest {
  readonly signal: AbortSignal;
  isOpen = false;
  place = -1;
  readonly #reply: FastifyReply;
  readonly #raw: ServerResponse;
  readonly #life: Life;
  readonly #userId: string;
  readonly #controller = new AbortController();
  #onDrain: (() => void) | null = null;

  constructor(reply: FastifyReply, life: Life, userId: string) {
    this.#reply = reply;
    this.#raw = reply.raw;
    this.#life = life;
    this.#userId = userId;
    this.signal = this.#controller.signal;
    life.add(this);
    this.#raw.once('close', this.#onClose);
    if (this.#raw.destroyed) this.#onClose();
  }

  get stream(): ClientStream {
    return this;
  }

  get bufferedBytes(): number {
    return this.#raw.writableLength;
  }

  abort(reason: CancelReason): void {
    this.#controller.abort(reason);
  }

  open(): void {
    this.isOpen = true;
    this.#reply.hijack();
    if (this.#raw.destroyed) return;
    const closing = this.#life.leaving ? { connection: 'close' } : {};
    this.#raw.writeHead(200, {
      ...(this.#reply.getHeaders() as Record<string, string>),
      ...streamHeaders,
      ...closing,
    });
  }

  write(bytes: Buffer | string): boolean {
    // A client that left does not slow down those who wait for the same answer.
    return this.#raw.destroyed || this.#raw.write(bytes);
  }

  keeps(bytes: number): void {
    this.#life.unread.add(this.#userId, this.#raw, bytes);
  }

  onDrain(callback: () => void): void {
    this.#onDrain = callback;
    this.#raw.once('drain', this.#drained);
  }

  end(bytes: string): void {
    if (!this.#raw.destroyed) this.#raw.end(bytes);
  }

  destroy(): void {
    this.#raw.destroy();
  }

  readonly #drained = (): void => {
    const callback = this.#onDrain;
    this.#onDrain = null;
    callback?.();
  };

  readonly #onClose = (): void => {
    this.#life.remove(this);
    if (!this.#raw.writableEnded) this.#controller.abort('client-gone');
    this.#drained();
  };
}
