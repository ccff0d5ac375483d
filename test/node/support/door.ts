import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect, createServer } from 'node:net';

/** The end of the node's wire on this machine: where pods find what the tests run. */
export const hostAddress = '10.123.0.1';
export const podNetwork = '10.244.0.0/24';

export interface Door {
  /** Nothing answers any more; connections through it are cut. */
  close(): Promise<void>;
}

/** Lets pods reach a loopback server, under a port of their side. */
export async function openDoor(port: number, url: string): Promise<Door> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  const carry = (from: Socket, to: Socket) => {
    sockets.add(from);
    from.setNoDelay(true);
    from.on('error', () => {});
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
    from.pipe(to);
  };
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    carry(client, upstream);
    carry(upstream, client);
  });
  server.listen(port, hostAddress);
  await once(server, 'listening');
  return {
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
