import { constants, randomInt } from 'node:crypto';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { siteNetwork } from '../../core/net/client-network.ts';
import { SharedRoom, slotOf } from '../../core/shared-room.ts';
import type { TlsTarget } from './open-socket.ts';
import { tlsOver } from './open-socket.ts';
import type { TlsPiece } from './tls-turns.ts';
import { TlsTurns } from './tls-turns.ts';

/** TLS with a server that a user chose: what it costs to listen to one is bounded, and shared out over turns. */

/**
 * A server's part of a handshake. Chains of companies take 4 to 10 KB; one that is made to be dear to verify
 * takes 4 ms a kilobyte, at once.
 */
const maxHandshakeBytes = 12 * 1024;
/** Longer ones are counted: a certificate of many names takes so many times its bytes while its socket lives. */
const longHandshakeBytes = 6 * 1024;
const memoryPerByte = 16;
/** For all of them together, beside the heap, where the smallest pod has 205 MiB; no server has more than is left. */
const chainsRoom = new SharedRoom(64 * 1024 * 1024);
const seed = randomInt(2 ** 31);
/** What may come that says nothing: tickets and changes of keys take 1 ms a kilobyte, and no reader hears of them. */
const maxSilentBytes = 64 * 1024;
/** How much longer what comes may be than what it says: a byte alone is a record of 23, three for one chunk of HTTP. */
const maxOverhead = 16;
/** One, as there is one event loop. */
const turns = new TlsTurns();

/** Stands between a connection and its TLS, which native code would otherwise read by itself. */
class UserCarrier extends Duplex implements TlsPiece {
  readonly network: string | null;
  /** Whose share of the room for certificates it takes from. */
  readonly #slot: number;
  readonly #raw: Socket;
  #tls: Socket | null = null;
  #isSecure = false;
  #came = 0;
  #piece: Buffer | null = null;

  /** `host`: stands for a network that nobody knows. */
  constructor(raw: Socket, network: string | null, host: string) {
    super();
    this.#raw = raw;
    this.network = network;
    this.#slot = slotOf(network ?? host, seed);
    raw.on('data', (bytes: Buffer) => this.#onBytes(bytes));
    raw.on('end', () => this.push(null));
    raw.on('error', (error) => this.#tls?.destroy(error));
    // What came before its end is still to be read, as late as its reader likes.
    raw.on('close', () => {
      if (!raw.readableEnded) this.#tls?.destroy();
    });
  }

  carry(tls: Socket): void {
    this.#tls = tls;
    tls.once('secureConnect', () => {
      this.#isSecure = true;
      this.#keepChain(tls);
    });
    tls.once('close', () => this.destroy());
  }

  #keepChain(tls: Socket): void {
    if (this.#came <= longHandshakeBytes) return;
    const bytes = memoryPerByte * this.#came;
    const slot = this.#slot;
    if (!chainsRoom.hasRoom(slot, bytes)) {
      tls.destroy(new Error('The certificates of the server are too long for so many connections.'));
      return;
    }
    chainsRoom.move(slot, bytes);
    tls.once('close', () => chainsRoom.move(slot, -bytes));
  }

  #onBytes(bytes: Buffer): void {
    this.#came += bytes.length;
    const said = this.#tls?.bytesRead ?? 0;
    const most = this.#isSecure ? maxSilentBytes + maxOverhead * said : 0;
    if (this.#came > maxHandshakeBytes + most) {
      this.#tls?.destroy(new Error('The server sends more for TLS than any needs.'));
      return;
    }
    this.#raw.pause();
    this.#piece = bytes;
    turns.enter(this);
  }

  get isHandshake(): boolean {
    return !this.#isSecure;
  }

  feed(): void {
    const piece = this.#piece;
    this.#piece = null;
    if (piece === null || this.destroyed) return;
    if (this.push(piece)) this.#raw.resume();
  }

  override _read(): void {
    if (this.#piece === null) this.#raw.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#raw.write(bytes, done);
  }

  override _final(done: () => void): void {
    this.#raw.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#piece = null;
    this.#raw.destroy();
    done(error);
  }
}

/**
 * TLS over an open connection. It ends with that one, and ends it. The owner listens for errors. `address`: where it
 * leads to, through proxies too; null: nobody knows.
 */
export function openUserTls(raw: Socket, target: TlsTarget, address: string | null): Socket {
  const carrier = new UserCarrier(raw, address === null ? null : siteNetwork(address), target.host);
  const socket = tlsOver({ socket: carrier, secureOptions: constants.SSL_OP_NO_RENEGOTIATION }, target);
  carrier.carry(socket);
  // Asked for by who looks at connections; TLS over a stream has none of its own.
  for (const name of ['localPort', 'remoteAddress', 'remotePort'] as const)
    Object.defineProperty(socket, name, { get: () => raw[name] });
  return socket;
}
