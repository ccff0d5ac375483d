import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LocalServer {
  /** Origin without a trailing slash. */
  readonly url: string;
  /** Cuts what is open. */
  close(): Promise<void>;
}

/** Serves on a free port of loopback. */
export async function serveLocally(listener: RequestListener): Promise<LocalServer> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
