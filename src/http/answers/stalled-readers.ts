import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { responseOn } from '../connections/node-internals.ts';

/**
 * A client that takes nothing of a whole answer for this long is let go. Shorter than what a stream's reader is
 * given (`clientStallMs`): a whole answer may be megabytes, and there is nothing left to wait for but its reader.
 */
export const answerStallMs = 30_000;

/**
 * Closes connections whose clients do not read. Node looks after the time: its socket timer is moved on by every
 * byte that the kernel takes, and by every byte that comes. Where an answer is not complete yet it is waited for,
 * and whoever writes it has limits of their own.
 */
export function letGoOfStalledReaders(server: Server, onStalled: () => void): void {
  server.setTimeout(answerStallMs, (socket: Socket) => {
    const response = responseOn(socket);
    if (response !== null && !response.writableEnded) return;
    if (response !== null) onStalled();
    socket.destroy();
  });
}
