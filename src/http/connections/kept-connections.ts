import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { siteNetwork } from '../../core/net/client-network.ts';
import { responseOn } from './node-internals.ts';

interface Kept {
  readonly openedAtMs: number;
  /** Null: an answer is under way, or nobody has looked. */
  seen: Seen | null;
}

interface Seen {
  /** Read and written when it was looked at. */
  readonly bytes: number;
  /** Since when neither has moved and no answer is under way. */
  readonly quietSinceMs: number;
}

/** Its first request may be on its way. */
const newMs = 2_000;

/** Nothing was ever answered on it. */
const isSilent = (socket: Socket): boolean => socket.bytesWritten === 0;

/**
 * The open connections of a listener. While it drains they are let go one by one. Node's own way closes all that
 * it takes for idle at once: also one whose client reads the end of an answer, or has just had it and sends the next
 * request, and never one that has sent nothing yet.
 */
export class KeptConnections {
  readonly #open = new Map<Socket, Kept>();

  get count(): number {
    return this.#open.size;
  }

  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      this.#open.set(socket, { openedAtMs: performance.now(), seen: null });
      socket.once('close', () => this.#open.delete(socket));
    });
  }

  /**
   * Closes up to `most` on which no answer is under way, of the network that has the most of them: first those that
   * never had one, then the oldest. So whoever opens them all keeps nobody else out.
   */
  makeRoom(most: number, nowMs: number): void {
    const byNetwork = new Map<string, Socket[]>();
    for (const [socket, { openedAtMs }] of this.#open) {
      if (socket.destroyed || nowMs - openedAtMs < newMs || responseOn(socket) !== null) continue;
      const network = siteNetwork(socket.remoteAddress ?? '');
      const own = byNetwork.get(network);
      if (own === undefined) byNetwork.set(network, [socket]);
      else own.push(socket);
    }
    let largest: readonly Socket[] = [];
    for (const own of byNetwork.values()) if (own.length > largest.length) largest = own;
    const [silent, others] = [largest.filter(isSilent), largest.filter((socket) => !isSilent(socket))];
    for (const socket of [...silent, ...others].slice(0, most)) socket.destroy();
  }

  /**
   * Looks at all of them; `letGo` closes those that were seen quiet for `quietMs`. Called often: what moves between
   * two looks is noticed at the second.
   */
  look(nowMs: number, quietMs: number, letGo: boolean): void {
    for (const [socket, kept] of this.#open) {
      const quietSinceMs = quietSince(socket, kept, nowMs);
      if (letGo && quietSinceMs !== null && nowMs - quietSinceMs >= quietMs) socket.destroy();
    }
  }
}

function quietSince(socket: Socket, kept: Kept, nowMs: number): number | null {
  if (responseOn(socket) !== null) {
    kept.seen = null;
    return null;
  }
  const bytes = socket.bytesRead + socket.bytesWritten;
  if (kept.seen === null || kept.seen.bytes !== bytes) kept.seen = { bytes, quietSinceMs: nowMs };
  return kept.seen.quietSinceMs;
}
