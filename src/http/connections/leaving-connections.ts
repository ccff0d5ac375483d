import type { Socket } from 'node:net';
import { answerStallMs } from '../answers/stalled-readers.ts';

/** A connection that is to be closed when its client has taken what was sent. */
interface Leaver {
  readonly name: string;
  /** In the kernel, and since when it is so many. */
  bytes: number;
  sinceMs: number;
}
export type Leavers = readonly (readonly [Socket, Leaver])[];

/**
 * Connections of which nothing more is read and that stay open for what the kernel has of their answers: once a socket
 * is closed nobody can reset it any more.
 */
export class LeavingConnections {
  readonly #leavers = new Map<Socket, Leaver>();

  get size(): number {
    return this.#leavers.size;
  }

  has(socket: Socket): boolean {
    return this.#leavers.has(socket);
  }

  add(socket: Socket, name: string): void {
    this.#leavers.set(socket, { name, bytes: Number.POSITIVE_INFINITY, sinceMs: performance.now() });
    socket.end();
    // No request is read any more, only the client's end.
    socket.removeAllListeners('data').on('data', () => undefined);
    socket.setTimeout(0).resume();
  }

  /** It has closed. */
  delete(socket: Socket): void {
    this.#leavers.delete(socket);
  }

  /** Those that are here before the kernel is asked: of later ones it has said nothing. */
  now(): Leavers {
    return [...this.#leavers];
  }

  /** Closes those whose clients have taken everything, and returns those that have taken nothing for too long. */
  letLeave(leavers: Leavers, sentBytes: ReadonlyMap<string, number>): Socket[] {
    const nowMs = performance.now();
    const stalled: Socket[] = [];
    for (const [socket, leaver] of leavers) {
      const bytes = sentBytes.get(leaver.name) ?? 0;
      if (bytes !== leaver.bytes) Object.assign(leaver, { bytes, sinceMs: nowMs });
      if (bytes === 0) restore(socket).destroy();
      else if (nowMs - leaver.sinceMs >= answerStallMs) stalled.push(socket);
    }
    return stalled;
  }

  destroyAll(): void {
    for (const socket of this.#leavers.keys()) socket.destroy();
  }
}

/** Gives the socket its own `destroy` back. */
export function restore(socket: Socket): Socket {
  delete (socket as Partial<Pick<Socket, 'destroy'>>).destroy;
  return socket;
}

/** What the kernel has of its answers is freed at once. */
export function reset(socket: Socket): Socket {
  // Not between the request for the end of the stream and that end: libuv would refuse.
  const isEnding = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  if (isEnding) return socket.once('finish', () => reset(socket));
  return restore(socket).resetAndDestroy();
}
