import type { Server, Socket } from 'node:net';

/**
 * Closes the oldest connection where there would be more than `most`: whoever floods a listener takes no files from
 * the process, and cannot keep probes and scrapers out, whose connections are new.
 */
export function keepNewest(server: Server, most: number): void {
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
    if (connections.size <= most) return;
    const [oldest] = connections;
    if (oldest === undefined) return;
    // Its end is told later, and another may come before.
    connections.delete(oldest);
    oldest.destroy();
  });
}
