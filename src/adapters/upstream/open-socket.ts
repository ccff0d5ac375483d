import type { LookupFunction, OnReadOpts, Socket } from 'node:net';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { HostAddress } from './name-files.ts';

/** One address of several gets this long before the next is tried beside the budget (RFC 8305 section 5). */
const attemptDelayMs = 500;
/** TCP keep-alive probes start after this long without traffic: below the usual 350 s of cloud NATs. */
const keepAliveMs = 60_000;
/** Resumed TLS sessions kept per connector; one per origin, and a connector serves few origins. */
const maxTlsSessions = 100;
/** Servers send two to four; each costs more than the bytes that it comes in, and no read is counted for it. */
const maxTickets = 16;

/** TLS sessions to be resumed, by host and port. */
export class TlsSessions {
  readonly #sessions = new Map<string, Buffer>();

  get(origin: string): Buffer | undefined {
    return this.#sessions.get(origin);
  }

  keep(origin: string, session: Buffer): void {
    this.#sessions.delete(origin);
    const oldest = this.#sessions.keys().next();
    if (this.#sessions.size >= maxTlsSessions && !oldest.done) this.#sessions.delete(oldest.value);
    this.#sessions.set(origin, session);
  }
}

export interface SocketTarget {
  /** A name, or an IP literal without brackets: for TLS what the certificate has to hold. */
  readonly host: string;
  readonly port: number;
  /** Takes the reads of sockets whose owner has a buffer of its own. */
  readonly onread?: OnReadOpts | undefined;
}

export interface TlsTarget extends SocketTarget {
  /** Absent for IP literals. */
  readonly servername?: string | undefined;
  /** Extra trusted roots (PEM), for tests with an own authority. */
  readonly ca?: string | undefined;
  readonly sessions: TlsSessions;
}

/** Hands the checked addresses to the socket, so that no second look-up can answer differently. */
function fixedLookup(addresses: readonly HostAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const first = addresses[0] as HostAddress;
    if (options.all) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
}

function tcpOptions({ host, port, onread }: SocketTarget, addresses: readonly HostAddress[]) {
  return {
    host,
    port,
    lookup: fixedLookup(addresses),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptDelayMs,
    ...(onread === undefined ? {} : { onread }),
  };
}

function tuned<S extends Socket>(socket: S): S {
  socket.setNoDelay(true).setKeepAlive(true, keepAliveMs);
  return socket;
}

/** TLS over what `transport` says: a connection, or where to connect to. The owner listens for errors. */
export function tlsOver(transport: object, { host, port, servername = '', ca, sessions }: TlsTarget): Socket {
  const origin = `${host}:${port}`;
  const session = sessions.get(origin);
  const socket = connectTls({
    ...transport,
    host,
    // An IP literal has no server name: the certificate must then carry the address itself.
    ...(servername === '' ? {} : { servername }),
    ...(session === undefined ? {} : { session }),
    ...(ca === undefined ? {} : { ca }),
    ALPNProtocols: ['http/1.1'],
    // Stated, since an environment variable can switch the default off.
    rejectUnauthorized: true,
  });
  let tickets = 0;
  socket.on('session', (fresh: Buffer) => {
    tickets += 1;
    if (tickets > maxTickets) socket.destroy(new Error('the server sent too many TLS session tickets'));
    else sessions.keep(origin, fresh);
  });
  return socket;
}

/** Connects to the first of these addresses that answers. The owner listens for errors. */
export function openTcp(target: SocketTarget, addresses: readonly HostAddress[]): Socket {
  return tuned(connectTcp(tcpOptions(target, addresses)));
}

/** The same with TLS. */
export function openTls(target: TlsTarget, addresses: readonly HostAddress[]): Socket {
  return tuned(tlsOver(tcpOptions(target, addresses), target));
}

/** TLS inside of a connection that another server carries. It ends with that one, and ends it. */
export function openTlsWithin(carrier: Socket, target: TlsTarget): Socket {
  return tlsOver({ socket: carrier }, target);
}

/** Brings what an open socket reads to a buffer that it was not made with. */
export function readInto(socket: Socket, { buffer, callback }: OnReadOpts): void {
  const shared = typeof buffer === 'function' ? buffer() : buffer;
  socket.on('data', (bytes: Buffer) => {
    for (let from = 0; from < bytes.length; from += shared.length) {
      const part = bytes.subarray(from, from + shared.length);
      shared.set(part);
      callback(part.length, shared);
    }
  });
}
