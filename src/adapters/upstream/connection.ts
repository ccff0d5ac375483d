import type { Socket } from 'node:net';
import type { ResponseHead } from './response-head.ts';
import type { ResponseFault, ResponseReader } from './response-parser.ts';
import { ResponseParser } from './response-parser.ts';

/** Why a call on this connection gave no whole answer. */
export type ConnectionFault = ResponseFault | 'reset';

/** Who waits for the answer. After `onComplete` or `onFault` nothing more comes. */
export interface ConnectionCall extends ResponseReader {
  onComplete(): void;
  onFault(fault: ConnectionFault): void;
}

/** Who lends the connection out. Each is called in the turn of its cause. */
export interface ConnectionOwner {
  /** The answer is whole and the connection can carry another call. */
  onFree(connection: Connection): void;
  onClosed(connection: Connection): void;
  /** A call was given up because nothing came: what was idle all the while may be dead as well. */
  onSilent(sinceMs: number): void;
}

/** One read; several connections share it, since what it holds is used up before the next one. */
const readBufferBytes = 64 * 1024;
const readBuffer = Buffer.allocUnsafeSlow(readBufferBytes);

/** Silence that makes an origin's idle connections suspect: a path that is broken says nothing on any of them. */
const suspectMs = 1_000;

/** A request that is larger is written as head and body, and not put together first. */
const joinedWriteLength = 64 * 1024;

/**
 * One socket to one origin, which carries one call at a time.
 *
 * `idle` → `busy` (a request was written) → `idle` when its answer was whole and the vendor keeps the connection, else
 * `closed`. Whatever comes while it is idle closes it.
 */
export class Connection {
  state: 'idle' | 'busy' | 'closed' = 'idle';
  /** Its place in the owner's list. */
  place = 0;
  /** Monotonic milliseconds at which it became idle. */
  idleSinceMs = 0;
  /** The turn, as `AfterNextPoll` counts them, in which it became idle. */
  idleSinceTurn = 0;
  /** What the vendor's `Keep-Alive: timeout` of the last answer said, in milliseconds; null without one. */
  keepAliveHintMs: number | null = null;
  readonly #owner: ConnectionOwner;
  readonly #monotonicMs: () => number;
  #socket: Socket | null = null;
  #call: ConnectionCall | null = null;
  #parser: ResponseParser | null = null;
  #paused = false;
  /** When the last byte came, or the request was written. */
  #heardAtMs = 0;

  constructor(owner: ConnectionOwner, monotonicMs: () => number) {
    this.#owner = owner;
    this.#monotonicMs = monotonicMs;
  }

  /** For the socket's `onread`: false stops reading. */
  readonly read = {
    buffer: readBuffer,
    callback: (bytesRead: number): boolean => {
      this.#onBytes(readBuffer.subarray(0, bytesRead));
      return true;
    },
  };

  /** The connected socket; from now on requests can be written. */
  adopt(socket: Socket): void {
    this.#socket = socket;
    socket.on('end', this.#onEnd);
    socket.on('error', this.#onGone);
    socket.on('close', this.#onGone);
  }

  /** Writes one request whole; `call` hears of the answer. */
  send(head: string, body: string, call: ConnectionCall): void {
    if (this.state !== 'idle')
      throw new Error(`A request was written to a connection that is ${this.state}.`);
    const socket = this.#socket as Socket;
    this.state = 'busy';
    this.#call = call;
    this.#parser = new ResponseParser(this.#reader);
    this.#heardAtMs = this.#monotonicMs();
    if (body.length <= joinedWriteLength) {
      socket.write(head + body, 'utf8');
      return;
    }
    socket.cork();
    socket.write(head, 'latin1');
    socket.write(body, 'utf8');
    socket.uncork();
  }

  pause(): void {
    this.#paused = true;
    this.#socket?.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#socket?.resume();
  }

  /** Closes now, without a word to the call. */
  destroy(): void {
    this.#call = null;
    this.#close();
  }

  /** The caller gives the call up: closes now, without a word to it. */
  abandon(): void {
    const silentMs = this.#monotonicMs() - this.#heardAtMs;
    const wasSilent = this.state === 'busy' && !this.#paused && silentMs >= suspectMs;
    this.destroy();
    if (wasSilent) this.#owner.onSilent(this.#heardAtMs);
  }

  /** Closes now; the call fails. */
  cut(): void {
    this.#fail('reset');
  }

  readonly #reader: ResponseReader = {
    onHead: (head: ResponseHead) => {
      this.keepAliveHintMs = keepAliveHint(head);
      this.#call?.onHead(head);
    },
    // The buffer is written again by the next read, on whichever connection.
    onBody: (bytes: Buffer) => this.#call?.onBody(Buffer.from(bytes)),
  };

  #onBytes(bytes: Buffer): void {
    const parser = this.#parser;
    if (parser === null) {
      // Nobody asked: an answer that would be taken for that of the next request.
      this.destroy();
      return;
    }
    this.#heardAtMs = this.#monotonicMs();
    parser.push(bytes);
    if (parser.state === 'failed') this.#fail(parser.fault ?? 'protocol');
    else if (parser.state === 'complete') this.#complete(parser);
  }

  #complete(parser: ResponseParser): void {
    const call = this.#call;
    this.#call = null;
    this.#parser = null;
    // A vendor that answers before it has read the request may still be sent the rest of it.
    const written = this.#socket?.writableLength === 0;
    this.resume();
    if (this.state === 'busy' && parser.persistent && written) {
      this.state = 'idle';
      this.#owner.onFree(this);
    } else {
      this.#close();
    }
    call?.onComplete();
  }

  #fail(fault: ConnectionFault): void {
    const call = this.#call;
    this.destroy();
    call?.onFault(fault);
  }

  readonly #onEnd = (): void => {
    const parser = this.#parser;
    if (parser?.end() === true) this.#complete(parser);
    else this.#fail('reset');
  };

  readonly #onGone = (): void => this.#fail('reset');

  #close(): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    this.#parser = null;
    this.#socket?.destroy();
    this.#owner.onClosed(this);
  }
}

const timeoutHint = /(?:^|[\s,;])timeout\s*=\s*"?(\d{1,6})/i;

function keepAliveHint({ headers }: ResponseHead): number | null {
  const value = headers['keep-alive'];
  if (value === undefined) return null;
  const seconds = timeoutHint.exec(String(value))?.[1];
  return seconds === undefined ? null : Number(seconds) * 1000;
}
