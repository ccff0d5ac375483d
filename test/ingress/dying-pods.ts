import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface DyingPods {
  readonly ports: readonly number[];
  /** Whole requests that they were sent, all together. */
  requests(): number;
  close(): void;
}

/** Pods that read a request to its end and then die, as far as a proxy can see. */
export async function startDyingPods(count: number): Promise<DyingPods> {
  let requests = 0;
  const servers = Array.from({ length: count }, () =>
    createServer((request) => {
      request.resume().once('end', () => {
        requests += 1;
        request.socket.resetAndDestroy();
      });
    }),
  );
  const ports = await Promise.all(
    servers.map(async (server) => {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return (server.address() as AddressInfo).port;
    }),
  );
  return {
    ports,
    requests: () => requests,
    close: () => {
      for (const server of servers) server.close();
    },
  };
}
