import { constants, randomInt } from 'node:crypto';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { LRUCache } from 'lru-cache';
import { clientNetwork } from '../../core/net/client-network.ts';
import { SharedRoom, slotOf } from '../../core/shared-room.ts';
import type { TlsTarget } from './open-socket.ts';
import { tlsOver } from './open-socket.ts';

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
/** TLS may take one turn of the event loop so long. */
const longestTurnMs = 25;
/** A handshake's piece that takes longer makes its server a dear one: verifying a company's chain takes 1 to 2 ms. */
const dearMs = 5;
/**
 * Handshakes with dear servers rest for so many times what the last of them took: a chain is one piece, takes up to
 * 65 ms, and fifteen a second would take all there is.
 */
const restFactor = 4;
/** Dear servers that are remembered, those of late. */
const mostDear = 10_000;
/** For so long behind the last dear piece: a busy process makes an honest server dear now and then. */
const dearForMs = 60_000;

interface Piece {
  /** Part of a handshake, which costs whatever the server's keys make it cost; what comes later costs by its bytes. */
  readonly isHandshake: boolean;
  /** The server by its name and port, of which anybody may have many. */
  readonly origin: string;
  /** And by the network of its address. */
  readonly server: string;
  /** Hands to TLS what has come. */
  feed(): void;
}

/** One of each server after the other: a crowd of connections to one of them keeps the others out no longer. */
function inTurn(pieces: readonly Piece[]): Piece[] {
  const byServer = [...Map.groupBy(pieces, ({ server }) => server).values()];
  const longest = Math.max(0, ...byServer.map(({ length }) => length));
  return Array.from({ length: longest }, (_, round) => byServer.flatMap((of) => of[round] ?? [])).flat();
}

/** One piece of each connection after the other, for so long in a turn: OpenSSL works on each without a break. */
export class TlsTurns {
  readonly #waiting: Piece[] = [];
  readonly #dear = new LRUCache<string, true>({ max: mostDear, ttl: dearForMs });
  /** Of dear servers, while there is a rest. */
  readonly #resting: Piece[] = [];
  #rest: NodeJS.Timeout | null = null;
  #spentMs = 0;
  #ends = false;

  /** Fed now, or in a later turn where this one has no time left. */
  enter(piece: Piece): void {
    this.#waiting.push(piece);
    this.#feedSome();
  }

  #feedSome(): void {
    while (this.#spentMs < longestTurnMs) {
      const piece = this.#waiting.shift();
      if (piece === undefined) return;
      if (this.#rest !== null && piece.isHandshake && this.#dear.has(piece.origin)) {
        this.#resting.push(piece);
        continue;
      }
      // As it was: with this piece the handshake may be over.
      const { isHandshake } = piece;
      const beganMs = performance.now();
      piece.feed();
      const tookMs = performance.now() - beganMs;
      this.#spentMs += tookMs;
      if (isHandshake && tookMs > dearMs) this.#restFrom(piece, tookMs);
      if (!this.#ends) setImmediate(this.#end);
      this.#ends = true;
    }
  }

  #restFrom({ origin }: Piece, tookMs: number): void {
    this.#dear.set(origin, true);
    this.#rest ??= setTimeout(this.#wake, restFactor * tookMs);
  }

  readonly #wake = (): void => {
    this.#rest = null;
    this.#waiting.push(...inTurn(this.#resting.splice(0)));
    this.#feedSome();
  };

  readonly #end = (): void => {
    this.#ends = false;
    this.#spentMs = 0;
    this.#feedSome();
  };
}

/** One, as there is one event loop. */
const turns = new TlsTurns();

/** Stands between a connection and its TLS, which native code would otherwise read by itself. */
class UserCarrier extends Duplex implements Piece {
  readonly origin: string;
  readonly server: string;
  readonly #raw: Socket;
  #tls: Socket | null = null;
  #isSecure = false;
  #came = 0;
  #piece: Buffer | null = null;

  constructor(raw: Socket, origin: string, server: string) {
    super();
    this.#raw = raw;
    this.origin = origin;
    this.server = server;
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
    const slot = slotOf(this.server, seed);
    const bytes = memoryPerByte * this.#came;
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
  const server = address === null ? target.host : clientNetwork(address);
  const carrier = new UserCarrier(raw, `${target.host}:${target.port}`, server);
  const socket = tlsOver({ socket: carrier, secureOptions: constants.SSL_OP_NO_RENEGOTIATION }, target);
  carrier.carry(socket);
  // Asked for by who looks at connections; TLS over a stream has none of its own.
  for (const name of ['localPort', 'remoteAddress', 'remotePort'] as const)
    Object.defineProperty(socket, name, { get: () => raw[name] });
  return socket;
}
