import type { Socket } from 'node:net';
import { connectionName } from '../../core/net/client-network.ts';
import type { IpClass } from '../../core/net/ip-class.ts';
import { classifyAddress } from '../../core/net/ip-class.ts';
import { ConnectError } from './connect-error.ts';
import type { ConnectionOwner, WaitingCall } from './connection-owner.ts';
import { vendorReadBytes } from './connection-pool.ts';
import type { ReadingTurns } from './reading-turns.ts';
import type { ResponseHead } from './response-head.ts';
import type { ResponseFault, ResponseReader } from './response-parser.ts';
import { ResponseParser } from './response-parser.ts';
import { SocketReading } from './socket-reading.ts';
import { writeRequest } from './write-request.ts';

/** Why a call on this connection gave no whole answer. */
export type ConnectionFault = ResponseFault | 'reset';

/** Who waits for the answer. After `onComplete` or `onFault` nothing more comes. */
export interface ConnectionCall extends ResponseReader {
  onComplete(): void;
  onFault(fault: ConnectionFault): void;
}

/**
 * Opens a socket whose reads go to `read`; `done` is called once, with the address that it leads to where that is
 * known. What it returns gives the attempt up.
 */
export type OpenSocket = (
  read: Connection['read'],
  done: (error: Error | null, socket: Socket | null, address: string | null) => void,
) => () => void;

/** One read; several connections share it, since what it holds is used up before the next one. */
const readBuffer = Buffer.allocUnsafeSlow(vendorReadBytes);

/** Silence that is worth telling: a path that is broken says nothing on any connection. */
const suspectMs = 1_000;

/**
 * One socket to one origin, which carries one call at a time.
 *
 * `opening` → `idle` → `busy` (a request was written) → `idle` when its answer was whole and the vendor keeps the
 * connection, else `closed`. Whatever comes while it is idle closes it.
 */
export class Connection {
  state: 'opening' | 'idle' | 'busy' | 'closed' = 'opening';
  /** Its place in the owner's list. */
  place = -1;
  /** Monotonic milliseconds at which it was open. */
  openedAtMs = 0;
  /** Monotonic milliseconds at which it became idle. */
  idleSinceMs = 0;
  /** The turn, as `AfterNextPoll` counts them, in which it became idle. */
  idleSinceTurn = 0;
  /** What the vendor's `Keep-Alive: timeout` of the last answer said, in milliseconds; null without one. */
  keepAliveHintMs: number | null = null;
  /** Of the address it leads to; null before it is open, and where only a proxy knows the address. */
  addressClass: IpClass | null = null;
  /** For the socket's `onread`: false stops reading. */
  readonly read: { readonly buffer: Buffer; readonly callback: (bytesRead: number) => boolean };
  readonly #owner: ConnectionOwner;
  readonly #monotonicMs: () => number;
  readonly #reading: SocketReading;
  #socket: Socket | null = null;
  /** Who waits for the socket. */
  #opener: WaitingCall | null = null;
  #stopOpening: () => void = nothing;
  #call: ConnectionCall | null = null;
  #parser: ResponseParser | null = null;
  /** When the last byte came, or the request was written. */
  #heardAtMs = 0;

  /** `readBytes`: what one read takes at most. */
  constructor(owner: ConnectionOwner, monotonicMs: () => number, turns: ReadingTurns, readBytes: number) {
    this.#owner = owner;
    this.#monotonicMs = monotonicMs;
    this.#reading = new SocketReading(turns);
    this.read = {
      buffer: readBuffer.subarray(0, readBytes),
      callback: (bytesRead) => {
        this.#onBytes(readBuffer.subarray(0, bytesRead));
        return true;
      },
    };
  }

  /** Connects for `call`, which is notified of what came of it unless it has abandoned the connection. */
  open(open: OpenSocket, call: WaitingCall): void {
    this.#opener = call;
    call.onOpening(this);
    this.#stopOpening = open(this.read, this.#onOpened);
  }

  readonly #onOpened = (error: Error | null, socket: Socket | null, address: string | null): void => {
    this.#stopOpening = nothing;
    if (this.state === 'closed') {
      socket?.destroy();
      return;
    }
    const call = this.#opener;
    this.#opener = null;
    if (socket === null) {
      this.#close();
      call?.onConnectError(error as Error);
      return;
    }
    this.state = 'idle';
    this.#socket = socket;
    this.openedAtMs = this.#monotonicMs();
    this.addressClass = classifyAddress(address ?? '');
    socket.on('end', this.#onEnd);
    socket.on('error', this.#onGone);
    socket.on('close', this.#onGone);
    if (call === null) this.#owner.onFree(this);
    else call.onConnection(this);
  };

  /** Writes one request whole; `call` receives the answer. */
  send(head: string, body: string | Buffer, call: ConnectionCall): void {
    if (this.state !== 'idle')
      throw new Error(`A request was written to a connection that is ${this.state}.`);
    this.state = 'busy';
    this.#call = call;
    this.#parser = new ResponseParser(this.#reader);
    this.#heardAtMs = this.#monotonicMs();
    const socket = this.#socket as Socket;
    this.#reading.begin(socket);
    writeRequest(socket, head, body);
  }

  /** As `connectionName`; null while it is not open. */
  get name(): string | null {
    const { localPort, remoteAddress, remotePort } = this.#socket ?? {};
    if (localPort === undefined || remoteAddress === undefined || remotePort === undefined) return null;
    return connectionName(localPort, remoteAddress, remotePort);
  }

  pause(): void {
    if (this.state === 'busy') this.#reading.pause();
  }

  resume(): void {
    this.#reading.resume();
  }

  /** Closes now, without a word to the call. */
  destroy(): void {
    this.#call = null;
    this.#opener = null;
    this.#close();
  }

  /** The caller gives the call up, and receives nothing more; `midAnswer`: since its answer stopped halfway. */
  abandon(midAnswer: boolean): void {
    if (this.state === 'opening' && this.#owner.keepOpening(this)) {
      this.#opener = null;
      return;
    }
    const silentMs = this.#monotonicMs() - this.#heardAtMs;
    const wasSilent = this.state === 'busy' && this.#reading.isOn && silentMs >= suspectMs;
    this.destroy();
    if (wasSilent) this.#owner.onSilent(this.#heardAtMs, midAnswer);
  }

  /** Closes now; the call fails. */
  cut(): void {
    const opener = this.#opener;
    this.#fail('reset');
    opener?.onConnectError(new ConnectError('reset'));
  }

  readonly #reader: ResponseReader = {
    onHead: (head: ResponseHead) => {
      this.keepAliveHintMs = head.keepAliveMs;
      this.#call?.onHead(head);
    },
    // The buffer is written again by the next read, on whichever connection.
    onBody: (bytes: Buffer) =>
      this.#call?.onBody(bytes.buffer === readBuffer.buffer ? Buffer.from(bytes) : bytes),
  };

  #onBytes(bytes: Buffer): void {
    const parser = this.#parser;
    if (parser === null) {
      // Nobody asked: an answer that would be taken for that of the next request.
      this.destroy();
      return;
    }
    this.#heardAtMs = this.#monotonicMs();
    this.#owner.heardAtMs = this.#heardAtMs;
    parser.push(bytes);
    if (parser.state === 'failed') this.#fail(parser.fault ?? 'protocol');
    else if (parser.state === 'complete') this.#complete(parser);
    this.#reading.took(this.#heardAtMs, this.#monotonicMs());
  }

  #complete(parser: ResponseParser): void {
    const call = this.#call;
    this.#call = null;
    this.#parser = null;
    this.#reading.end();
    if (this.state !== 'busy' || !parser.persistent) this.#close();
    else if (this.#isWritten) this.#free();
    // TLS says a turn later that a write is done: a vendor that answers at once would cost a handshake each time.
    else setImmediate(() => (this.#isWritten ? this.#free() : this.#close()));
    call?.onComplete();
  }

  /** A vendor that answers before it has read the request may still be sent the rest of it. */
  get #isWritten(): boolean {
    return this.#socket?.writableLength === 0;
  }

  #free(): void {
    if (this.state !== 'busy') return;
    this.state = 'idle';
    this.#owner.onFree(this);
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
    this.#reading.end();
    this.#stopOpening();
    this.#socket?.destroy();
    this.#owner.onClosed(this);
  }
}

const nothing = (): void => undefined;
