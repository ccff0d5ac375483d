import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { serveParent } from './worker.ts';
import { anthropicEvents, jsonAnswer, streamEvents } from './workload.ts';

/**
 * A model vendor as fast as Node can be: it parses nothing and its answers were made beforehand. With the files of a
 * certificate and its key as arguments it speaks TLS.
 */

/** Milliseconds between the events of the streams that begin from now on; 0: all at once. */
let intervalMs = 0;

const asksForStream = Buffer.from('"stream":true');
const jsonHead = { 'content-type': 'application/json', 'content-length': jsonAnswer.length };
const streamHead = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

function answer(request: IncomingMessage, response: ServerResponse): void {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const { url = '' } = request;
    if (url.endsWith('/messages')) return stream(response, anthropicEvents);
    if (!url.endsWith('/chat/completions')) return void response.end(); // where traces go
    if (parts.some((part) => part.includes(asksForStream))) return stream(response, streamEvents);
    response.writeHead(200, jsonHead).end(jsonAnswer);
  });
}

function stream(response: ServerResponse, events: readonly Buffer[]): void {
  response.writeHead(200, streamHead);
  if (intervalMs === 0) {
    for (const event of events) response.write(event);
    response.end();
    return;
  }
  response.write(events[0]);
  let sent = 1;
  const timer = setInterval(() => {
    response.write(events[sent]);
    sent += 1;
    if (sent < events.length) return;
    clearInterval(timer);
    response.end();
  }, intervalMs);
  response.once('close', () => clearInterval(timer));
}

const [certFile, keyFile] = process.argv.slice(2);
const server =
  certFile === undefined || keyFile === undefined
    ? createServer(answer)
    : createSecureServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, answer);

server.listen(0, '127.0.0.1', () => {
  serveParent(server, (pace: number) => {
    intervalMs = pace;
    return null;
  });
});
