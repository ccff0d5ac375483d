import type { TransportFailure, UpstreamCall, UpstreamControl, UpstreamListener } from '../../chat/ports.ts';
import type { IpClass } from '../../core/net/ip-class.ts';
import { ConnectError } from './connect-error.ts';
import type { Connection, ConnectionCall, ConnectionFault } from './connection.ts';
import type { WaitingCall } from './connection-owner.ts';
import type { ContentDecoder } from './content-decoder.ts';
import { decoderFor, isCoded } from './content-decoder.ts';
import type { ResponseHead } from './response-head.ts';
import { connectingFailure, transportFailure } from './upstream-http-port.ts';
import type { PoolLease } from './upstream-pools.ts';

/** What a header of a request may hold: no control character, so no second header and no second request. */
const fieldText = /^[\t\x20-\x7e]*$/;
const sendablePath = /^[\x21-\x7e]+$/;

/** The request's head as it is written; null when a part of it cannot be. */
export function requestHead(call: UpstreamCall, host: string): string | null {
  if (!sendablePath.test(call.path)) return null;
  const { method, body, path } = call;
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`;
  for (const name in call.headers) {
    const value = call.headers[name] as string;
    if (!fieldText.test(value)) return null;
    head += `${name}: ${value}\r\n`;
  }
  return body === null ? `${head}\r\n` : `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n`;
}

type Lease = Pick<PoolLease<unknown>, 'release' | 'unpacks'>;

/**
 * One call from `send` to its end: the connection on one side, the story's listener on the other.
 *
 * `waiting` (for a connection) → `sent` → `over`. The request is let go of once it is written: it holds the key.
 */
export class ActiveCall implements ConnectionCall, WaitingCall, UpstreamControl {
  state: 'waiting' | 'sent' | 'over' = 'waiting';
  isSent = false;
  addressClass: IpClass | null = null;
  #head: string;
  #body: string | Buffer;
  readonly #userAddress: boolean;
  readonly #lease: Lease | null;
  readonly #listener: UpstreamListener;
  #connection: Connection | null = null;
  #decoder: ContentDecoder | null = null;

  /** `lease` is released once, when the call is over. */
  constructor(
    head: string,
    call: Pick<UpstreamCall, 'body' | 'userAddress'>,
    listener: UpstreamListener,
    lease: Lease | null,
  ) {
    this.#head = head;
    this.#body = call.body ?? '';
    this.#userAddress = call.userAddress;
    this.#lease = lease;
    this.#listener = listener;
  }

  get isOver(): boolean {
    return this.state === 'over';
  }

  get connectionName(): string | null {
    return this.#connection?.name ?? null;
  }

  onOpening(connection: Connection): void {
    this.#connection = connection;
  }

  onConnection(connection: Connection): void {
    this.state = 'sent';
    this.isSent = true;
    this.addressClass = connection.addressClass;
    this.#connection = connection;
    const [head, body] = [this.#head, this.#body];
    this.#forget();
    connection.send(head, body, this);
  }

  onConnectError(error: Error): void {
    this.#connection = null;
    this.#finish(error instanceof ConnectError ? connectingFailure(error) : transportFailure('protocol'));
  }

  onHead(head: ResponseHead): void {
    const coding = head.contentEncoding;
    if (coding !== null && isCoded(coding)) {
      const problem = this.#decode(coding);
      if (problem !== null) {
        this.fail(problem);
        return;
      }
    }
    this.#listener.onHead(head);
  }

  onBody(bytes: Buffer): void {
    if (this.#decoder !== null) this.#decoder.write(bytes);
    else if (this.state !== 'over') this.#listener.onData(bytes);
  }

  onComplete(): void {
    this.#connection = null;
    if (this.#decoder !== null) this.#decoder.end();
    else this.#finish(null);
  }

  onFault(fault: ConnectionFault): void {
    this.#connection = null;
    this.#finish(transportFailure(fault));
  }

  pause(): void {
    if (this.#decoder !== null) this.#decoder.pause();
    else this.#connection?.pause();
  }

  resume(): void {
    if (this.#decoder !== null) this.#decoder.resume();
    else this.#connection?.resume();
  }

  abort(midAnswer = false): void {
    this.fail('aborted', midAnswer);
  }

  /** Ends the call and its connection. */
  fail(kind: TransportFailure['kind'], midAnswer = false): void {
    if (this.state === 'over') return;
    const connection = this.#connection;
    this.#connection = null;
    this.#finish(transportFailure(kind));
    connection?.abandon(midAnswer);
  }

  /** What keeps a coded answer from being read; null: nothing. */
  #decode(coding: string): 'unknown-coding' | 'no-room' | null {
    if (this.#lease?.unpacks() === false) return 'no-room';
    this.#decoder = decoderFor(coding, this.#userAddress, {
      // The decoder works on when the call has failed; the listener must not receive it.
      onData: (chunk) => {
        if (this.state !== 'over') this.#listener.onData(chunk);
      },
      onEnd: () => this.#unpacked(),
      onProblem: (kind) => this.fail(kind),
      pause: () => this.#connection?.pause(),
      resume: () => this.#connection?.resume(),
    });
    return this.#decoder === null ? 'unknown-coding' : null;
  }

  /**
   * More of the body may come behind the end of what was packed, or its end never: while it is not whole the connection
   * would stay busy for nobody. An answer that ended in order has given it back.
   */
  #unpacked(): void {
    const connection = this.#connection;
    this.#connection = null;
    this.#finish(null);
    connection?.destroy();
  }

  #forget(): void {
    this.#head = '';
    this.#body = '';
  }

  #finish(failure: TransportFailure | null): void {
    if (this.state === 'over') return;
    this.state = 'over';
    this.#forget();
    // At once: it may have megabytes to unpack that nobody wants any more.
    this.#decoder?.destroy();
    this.#lease?.release();
    if (failure === null) this.#listener.onEnd();
    else this.#listener.onFailure(failure);
  }
}
