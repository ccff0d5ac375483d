import { once } from 'node:events';
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
};

export interface SiteServer {
  readonly url: string;
  close(): Promise<void>;
}

/** A plain server of the files below `site`, as any host of it would be; port 0 is any free one. Rejects as listen does. */
export async function serveSite(site: string, port: number): Promise<SiteServer> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const path = normalize(decodeURIComponent(pathname)).replace(/\/$/, '/index.html');
    const file = [path, `${path}.html`].map((one) => join(site, one)).find(isFile);
    response.writeHead(file === undefined ? 404 : 200, {
      'content-type': types[extname(file ?? '.html')] ?? 'application/octet-stream',
    });
    createReadStream(file ?? join(site, '404.html')).pipe(response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
