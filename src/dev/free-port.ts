import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below those that systems give to outgoing connections (from 32768 or 49152), one of which may be quicker than we. */
const firstPort = 20_000;
const endPort = 32_768;
const tries = 20;

/** A port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < tries; attempt += 1) {
    const port = randomInt(firstPort, endPort);
    if (await isPortFree('127.0.0.1', port)) return port;
  }
  return await listenOnce('127.0.0.1', 0);
}

/** Whether a listener could be opened there now. Throws what the system says of an address that cannot be used. */
export async function isPortFree(host: string, port: number): Promise<boolean> {
  try {
    await listenOnce(host, port);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
}

function listenOnce(host: string, port: number): Promise<number> {
  return new Promise((done, fail) => {
    const server = createServer();
    server.once('error', fail);
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => done(typeof address === 'object' && address !== null ? address.port : port));
    });
  });
}
