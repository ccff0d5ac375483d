import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { onTestFinished } from 'vitest';

/** Opens bare connections to a server, cut at the end of the running test; nobody minds how they end before. */
export function bareSockets(url: string): () => Socket {
  const { hostname: host, port } = new URL(url);
  const opened: Socket[] = [];
  onTestFinished(() => {
    for (const socket of opened) socket.destroy();
  });
  return () => {
    const socket = connect({ host, port: Number(port) });
    socket.on('error', () => undefined);
    opened.push(socket);
    return socket;
  };
}

/** Resolves once more can be written, or nothing any more. */
export function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.removeListener('drain', done);
      socket.removeListener('close', done);
      resolve();
    };
    socket.once('drain', done);
    socket.once('close', done);
    if (socket.destroyed) done();
  });
}
