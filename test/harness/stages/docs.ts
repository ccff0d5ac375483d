import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { nodePackages } from '../clients/node-packages.ts';
import { makeSite } from '../site/make-site.ts';
import { isStopped } from '../stage/children.ts';
import { inProject } from '../stage/project.ts';
import { runStage, withRunFolder } from '../stage/run-stage.ts';

/** For `--serve`. */
const port = 5173;
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
};

/**
 * `npm run docs`: the documents as a site with a search, in site/. A link that leads nowhere fails it. `npm run docs -- --serve`
 * shows the site afterwards, until Ctrl-C.
 */
await runStage(async () => {
  const site = inProject('site');
  const packages = await nodePackages('test/harness/site', 'the generator of the site');
  const passed = await withRunFolder((folder) => makeSite(packages, join(folder, 'pages'), site));
  console.log('The site is in site/.');
  if (process.argv.includes('--serve') && !isStopped()) await serve(site);
  return { passed, failed: 0, skipped: 0 };
});

/** A plain server of files, as any host of the site would be; resolves when it is stopped. */
function serve(site: string): Promise<void> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const path = normalize(decodeURIComponent(pathname)).replace(/\/$/, '/index.html');
    const file = [path, `${path}.html`].map((one) => join(site, one)).find(isFile);
    response.writeHead(file === undefined ? 404 : 200, {
      'content-type': types[extname(file ?? '.html')] ?? 'application/octet-stream',
    });
    createReadStream(file ?? join(site, '404.html')).pipe(response);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}, until Ctrl-C.`));
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => {
        server.closeAllConnections();
        server.close(() => resolve());
      });
  });
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
