import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { responseOn } from './node-internals.ts';

interface Seen {
  /** Read and written when it was looked at. */
  bytes: number;
  /** Since when neither has moved and no answer is under way. */
  quietSinceMs: number;
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
