import { createServer } from 'node:net';
import { StartError } from './start-error.ts';

/** A port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
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
