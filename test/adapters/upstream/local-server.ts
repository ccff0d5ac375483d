import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { UpstreamCall } from '../../../src/chat/ports.ts';

/** A server on this host for one test. */
export interface LocalServer {
  readonly port: number;
  /** Of plain HTTP. */
  readonly origin: string;
  /** All connections that came, in order. */
  readonly accepted: readonly Socket[];
  /** Those of them that are open. */
  readonly open: ReadonlySet<Socket>;
  /** Before the end of the test, which does it too. */
  close(): void;
}

/** Lets the server take connections at a free port, until the test ends. */
export async function listen(server: Server, address = '127.0.0.1', port = 0): Promise<LocalServer> {
  const accepted: Socket[] = [];
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    accepted.push(socket);
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
  });
  server.listen(port, address);
  await once(server, 'listening');
  const close = (): void => {
    for (const socket of open) socket.destroy();
    server.close();
  };
  onTestFinished(close);
  const bound = (server.address() as AddressInfo).port;
  const host = address.includes(':') ? `[${address}]` : address;
  return { port: bound, origin: `http://${host}:${bound}`, accepted, open, close };
}

/** A call to a vendor there; `overrides` make a user's of it. */
export const callTo = (origin: string, overrides: Partial<UpstreamCall> = {}): UpstreamCall => ({
  provider: 'openai',
  origin,
  method: 'POST',
  path: '/v1/chat/completions',
  headers: { 'content-type': 'application/json', authorization: 'Bearer k' },
  body: '{"a":1}',
  residency: 'global',
  residencyBound: null,
  userAddress: false,
  userId: 'u',
  ...overrides,
});

/** What differs in a call to a server that a user named. */
export const ofUser = (userId: string) => ({ provider: 'self_hosted', userAddress: true, userId }) as const;
