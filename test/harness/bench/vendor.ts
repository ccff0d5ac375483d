import type { ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { serveParent } from './worker.ts';
import { jsonAnswer, streamEvents } from './workload.ts';

/** A model vendor as fast as Node can be: it parses nothing and its answers were made beforehand. */

/** Milliseconds between the events of the streams that begin from now on; 0: all at once. */
let intervalMs = 0;

const asksForStream = Buffer.from('"stream":true');
const jsonHead = { 'content-type': 'application/json', 'content-length': jsonAnswer.length };
const streamHead = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    if (!request.url?.endsWith('/chat/completions')) return void response.end(); // where traces go
    if (parts.some((part) => part.includes(asksForStream))) return stream(response);
    response.writeHead(200, jsonHead).end(jsonAnswer);
  });
});

function stream(response: ServerResponse): void {
  response.writeHead(200, streamHead);
  if (intervalMs === 0) {
    for (const event of streamEvents) response.write(event);
    response.end();
    return;
  }
  response.write(streamEvents[0]);
  let sent = 1;
  const timer = setInterval(() => {
    response.write(streamEvents[sent]);
    sent += 1;
    if (sent < streamEvents.length) return;
    clearInterval(timer);
    response.end();
  }, intervalMs);
  response.once('close', () => clearInterval(timer));
}

server.listen(0, '127.0.0.1', () => {
  serveParent(server, (pace: number) => {
    intervalMs = pace;
    return null;
  });
});
