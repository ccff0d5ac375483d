import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { siteGroups } from '../../core/net/client-network.ts';
import { responseOn } from './node-internals.ts';

interface Seen {
  /** Read and written when it was looked at. */
  bytes: number;
  /** Since when neither has moved and no answer is under way. */
  quietSinceMs: number;
}

/** Without a byte, and without an answer under way: nobody has it for a request that begins. */
const unusedMs = 2_000;
/** Looking at five thousand of them takes some milliseconds. */
export const lookEveryMs = 1_000;

interface Unused {
  readonly socket: Socket;
  readonly quietSinceMs: number;
}

/** Nothing was ever answered on it. */
const isSilent = ({ socket }: Unused): boolean => socket.bytesWritten === 0;

/** Those that never asked for anything first, then those that have been unused the longest. */
function inOrder(one: Unused, other: Unused): number {
  return Number(isSilent(other)) - Number(isSilent(one)) || one.quietSinceMs - other.quietSinceMs;
}

/** Roughly whose it is, since thousands are looked at: an IPv4 address, or what an IPv6 address begins with. */
function ownerOf({ remoteAddress = '' }: Socket): string {
  if (!remoteAddress.includes(':')) return remoteAddress;
  return remoteAddress.includes('.')
    ? remoteAddress.slice(remoteAddress.lastIndexOf(':') + 1)
    : remoteAddress.split(':', siteGroups).join(':');
}

/**
 * The open connections of a listener. While it drains they are let go one by one. Node's own way closes all that
 * it takes for idle at once: also one whose client reads the end of an answer, or has just had it and sends the next
 * request, and never one that has sent nothing yet.
 */
export class KeptConnections {
  readonly #open = new Map<Socket, Seen | null>();

  get count(): number {
    return this.#open.size;
  }

  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      this.#open.set(socket, null);
      socket.once('close', () => this.#open.delete(socket));
    });
  }

  /**
   * Where there are more than `most`, closes unused ones, first of whoever has the most of them: one who opens them all
   * keeps nobody else out. What is unused shows between two calls.
   */
  makeRoom(most: number, nowMs: number): void {
    const unused = new Map<string, Unused[]>();
    for (const [socket, seen] of this.#open) {
      const quietSinceMs = this.#quietSince(socket, seen, nowMs);
      if (socket.destroyed || quietSinceMs === null || nowMs - quietSinceMs < unusedMs) continue;
      const owner = ownerOf(socket);
      const own = unused.get(owner);
      if (own === undefined) unused.set(owner, [{ socket, quietSinceMs }]);
      else own.push({ socket, quietSinceMs });
    }
    const excess = this.count - most;
    if (excess <= 0) return;
    const owners = [...unused.values()].sort((one, other) => other.length - one.length);
    const inWay = owners.flatMap((own) => own.sort(inOrder));
    for (const { socket } of inWay.slice(0, excess)) socket.destroy();
  }

  /**
   * Looks at all of them; `letGo` closes those that were seen quiet for `quietMs`. Called often: what moves between
   * two looks is noticed at the second.
   */
  look(nowMs: number, quietMs: number, letGo: boolean): void {
    for (const [socket, seen] of this.#open) {
      const quietSinceMs = this.#quietSince(socket, seen, nowMs);
      if (letGo && quietSinceMs !== null && nowMs - quietSinceMs >= quietMs) socket.destroy();
    }
  }

  #quietSince(socket: Socket, seen: Seen | null, nowMs: number): number | null {
    if (responseOn(socket) !== null) {
      if (seen !== null) this.#open.set(socket, null);
      return null;
    }
    const bytes = socket.bytesRead + socket.bytesWritten;
    if (seen !== null && seen.bytes === bytes) return seen.quietSinceMs;
    this.#open.set(socket, { bytes, quietSinceMs: nowMs });
    return nowMs;
  }
}
