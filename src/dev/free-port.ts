import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { StartError } from './start-error.ts';

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

/** Whether a listener could be opened there now. Throws StartError when the address itself cannot be used. */
export async function isPortFree(host: string, port: number): Promise<boolean> {
  try {
    await listenOnce(host, port);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') return false;
    throw new StartError(`Cannot listen on ${host}:${port} (${code}).`);
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
