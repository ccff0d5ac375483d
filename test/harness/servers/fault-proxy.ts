import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';

/** A wire between the gateway and one of its dependencies that can be made slow, mute, or cut. */
export interface FaultyWire {
  readonly host: string;
  readonly port: number;
  /** Each piece, either way, arrives this much later. */
  delay(ms: number): void;
  /** From now on nothing passes on the connections that are open, nor on new ones, and none is closed. */
  silence(): void;
  /** New connections work again; those of the silence stay dead, as half-open ones do. */
  heal(): void;
  openConnections(): number;
  close(): Promise<void>;
}

/** A TCP proxy in front of the address of `url`. */
export async function startFaultyWire(url: string): Promise<FaultyWire> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  const dead = new WeakSet<Socket>();
  let delayMs = 0;
  let silent = false;

  const carry = (from: Socket, to: Socket): void => {
    sockets.add(from);
    from.setNoDelay(true);
    from.on('error', () => {});
    from.on('data', (piece) => {
      if (dead.has(from)) return;
      if (delayMs === 0) to.write(piece);
      else setTimeout(() => to.write(piece), delayMs);
    });
    from.on('close', () => {
      sockets.delete(from);
      if (!dead.has(from)) setTimeout(() => to.destroy(), delayMs);
    });
  };
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    carry(client, upstream);
    carry(upstream, client);
    if (silent) for (const socket of [client, upstream]) dead.add(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    delay: (ms) => {
      delayMs = ms;
    },
    silence: () => {
      silent = true;
      for (const socket of sockets) dead.add(socket);
    },
    heal: () => {
      silent = false;
      delayMs = 0;
    },
    openConnections: () => sockets.size / 2,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** `url` with the wire's address in place of its own. */
export function through(wire: FaultyWire, url: string): string {
  const led = new URL(url);
  led.hostname = wire.host;
  led.port = String(wire.port);
  return led.href;
}
