import type { AddressInfo } from 'node:net';
import { createServer as createTcpServer } from 'node:net';

/** The URL of a port that refuses connections. */
export async function closedPort(): Promise<string> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

/** A port that accepts a connection and resets it at once. */
export async function resettingPort(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.resetAndDestroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
