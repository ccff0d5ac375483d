import { createServer } from 'node:http';
import { serveParent } from './worker.ts';

/** Takes spans and throws them away. */
const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => response.end());
});

server.listen(0, '127.0.0.1', () => serveParent(server, () => null));
