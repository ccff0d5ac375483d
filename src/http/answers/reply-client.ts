import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { Cancellation } from '../../chat/cancellation.ts';
import type { Client, ClientStream } from '../../chat/client-stream.ts';
import type { JsonAnswer } from '../../core/answer/json-answer.ts';
import type { CancelReason } from '../../core/outcome.ts';
import type { ActiveRequest, Life } from '../life.ts';
import { StreamHead, writeAnswerHead } from './answer-head.ts';
import { ChunkedWriter } from './chunked-writer.ts';

/** Proxies must neither buffer nor store a stream. */
const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-cache',
  'x-accel-buffering': 'no',
} as const;
const jsonType = 'application/json; charset=utf-8';

/**
 * A chat client on its raw response. Answers go past Fastify's pipeline; the raw response alone shows reliably when
 * the client has left.
 */
export class ReplyClient implements Client, ClientStream, ActiveRequest {
  readonly signal = new Cancellation();
  place = -1;
  readonly #reply: FastifyReply;
  readonly #raw: ServerResponse;
  readonly #life: Life;
  readonly #userId: string;
  /** Null until it was prepared. */
  #head: StreamHead | null = null;
  /** Null until a stream is open. */
  #body: ChunkedWriter | null = null;
  #onDrain: (() => void) | null = null;
  /** The whole answer counts as unread already. */
  #isKept = false;
  /** Of what was written and waits for this client to read on. */
  #onTaken: (() => void) | null = null;

  constructor(reply: FastifyReply, life: Life, userId: string) {
    this.#reply = reply;
    this.#raw = reply.raw;
    this.#life = life;
    this.#userId = userId;
    life.add(this);
    this.#raw.on('close', this.#onClose);
    if (this.#raw.destroyed) this.#onClose();
  }

  get isOpen(): boolean {
    return this.#body !== null;
  }

  get stream(): ClientStream {
    return this;
  }

  get bufferedBytes(): number {
    return this.#raw.writableLength;
  }

  abort(reason: CancelReason): void {
    this.signal.abort(reason);
  }

  /**
   * Puts the head of a stream together in two turns, when the vendor has been asked, which takes as many
   * (`adapters/upstream/after-next-poll.ts`), and is silent: between its first token and this client's lie 14 µs less
   * then, where requests are few. Headers that are set later are not in it.
   */
  prepare(): void {
    setImmediate(() => setImmediate(this.#prepareHead));
  }

  open(): void {
    let isChunked = false;
    if (!this.#raw.destroyed) {
      this.#countsAsUnread();
      const head = this.#head ?? this.#streamHead();
      isChunked = head.write(this.#raw, this.#isLeaving);
    }
    this.#head = null;
    this.#reply.hijack();
    this.#body = new ChunkedWriter(this.#raw, isChunked);
  }

  /** Writes a whole answer, for which Fastify's pipeline takes 3 µs more. */
  answer({ json, bytes }: JsonAnswer): void {
    if (this.#raw.destroyed) {
      this.#reply.hijack();
      return;
    }
    this.#countsAsUnread();
    const headers = this.#headersWith({ 'content-type': jsonType, 'content-length': String(bytes) });
    if (this.#isLeaving) headers['connection'] = 'close';
    writeAnswerHead(this.#raw, headers);
    // Until they are written the answer is Fastify's: what throws before is an error that its client is told.
    this.#reply.hijack();
    this.#life.unread.sent.wrote(bytes);
    this.keeps(bytes);
    // ASCII has as many bytes as characters: it is copied as it lies there, and not put together first.
    this.#raw.end(json, bytes === json.length ? 'latin1' : 'utf8');
  }

  write(bytes: Buffer | string): boolean {
    this.#life.unread.sent.wrote(Buffer.byteLength(bytes));
    // A client that left does not slow down those who wait for the same answer.
    if (this.#raw.destroyed) return true;
    const hasRoom = this.#openBody.write(bytes);
    if (!hasRoom && !this.#isKept) this.#countWaiting();
    return hasRoom;
  }

  flush(): void {
    // Node gathers the head and the first chunk until the next tick.
    this.#raw.socket?.uncork();
  }

  keeps(bytes: number): void {
    this.#isKept = true;
    this.#life.unread.add(this.#userId, this.#raw, bytes);
  }

  onDrain(callback: () => void, source: string | null): void {
    this.#onDrain = callback;
    this.#life.unread.sent.holdsBack(this.#raw, source);
    this.#openBody.onceDrained(this.#drained);
  }

  end(bytes: string): void {
    if (!this.#raw.destroyed) this.#openBody.end(bytes);
  }

  destroy(): void {
    this.#raw.destroy();
  }

  get #openBody(): ChunkedWriter {
    if (this.#body === null) throw new Error('A stream was written to before it was open.');
    return this.#body;
  }

  get #isLeaving(): boolean {
    return this.#life.phase !== 'serving';
  }

  #countsAsUnread(): void {
    this.#life.unread.sent.answers(this.#userId, this.#raw);
  }

  /** One event may be a megabyte, and a thousand clients may read none. */
  #countWaiting(): void {
    this.#onTaken?.();
    this.#onTaken = this.#life.unread.add(this.#userId, this.#raw, this.bufferedBytes);
  }

  #streamHead(): StreamHead {
    return new StreamHead(this.#headersWith(streamHeaders));
  }

  /** The headers set so far and these. */
  #headersWith(headers: Readonly<Record<string, string>>): Record<string, string> {
    const all = this.#reply.getHeaders() as Record<string, string>;
    for (const name in headers) all[name] = headers[name] as string;
    return all;
  }

  readonly #prepareHead = (): void => {
    if (this.#raw.destroyed || this.isOpen) return;
    try {
      this.#head = this.#streamHead();
    } catch {
      // A header of ours that is none is met again by `open`, where it is an error of this request alone.
    }
  };

  readonly #drained = (): void => {
    const callback = this.#onDrain;
    this.#onDrain = null;
    this.#onTaken?.();
    this.#onTaken = null;
    if (callback === null) return;
    this.#life.unread.sent.holdsBack(this.#raw, null);
    callback();
  };

  readonly #onClose = (): void => {
    this.#life.remove(this);
    if (!this.#raw.writableEnded) this.signal.abort('client-gone');
    this.#drained();
  };
}
