import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import fastify from 'fastify';
import type { Dispatcher } from 'undici';
import { Pool } from 'undici';
import { serveParent } from './worker.ts';

/**
 * What no gateway on this stack can be below: it takes the body as bytes, sends it on, and writes what comes back.
 * Arguments: `http` or `fastify`, and the vendor's URL; the gateway is measured against the one with Fastify. Runs as
 * dist/measured/bench/floor.js.
 */

const [kind, vendor = ''] = process.argv.slice(2);
const path = '/v1/chat/completions';
const pool = new Pool(vendor, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });

/** One exchange: undici's handler on one side, the raw response on the other, no stream between. */
class Relay implements Dispatcher.DispatchHandler {
  #response: ServerResponse;
  #controller: Dispatcher.DispatchController | null = null;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.once('close', () => {
      if (!response.writableFinished) this.#controller?.abort(new Error('the client left'));
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
  }

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    const head: Record<string, string | undefined> = { 'content-type': headers['content-type'] };
    if (headers['content-length'] !== undefined) head['content-length'] = headers['content-length'];
    this.#response.writeHead(status, head);
  }

  onResponseData(controller: Dispatcher.DispatchController, bytes: Buffer): void {
    if (this.#response.write(bytes)) return;
    controller.pause();
    this.#response.once('drain', () => controller.resume());
  }

  onResponseEnd(): void {
    this.#response.end();
  }

  onResponseError(): void {
    this.#response.destroy();
  }
}

function forward(body: Buffer, headers: IncomingHttpHeaders, response: ServerResponse): void {
  const sent = {
    'content-type': 'application/json',
    authorization: headers['authorization'],
  };
  pool.dispatch({ path, method: 'POST', headers: sent, body }, new Relay(response));
}

function bareHttp(): void {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => forward(Buffer.concat(parts), request.headers, response));
  });
  server.listen(0, '127.0.0.1', () => serveParent(server, () => null));
}

async function bareFastify(): Promise<void> {
  const app = fastify({ logger: false });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.post(path, (request, reply) => {
    reply.hijack();
    forward(request.body as Buffer, request.headers, reply.raw);
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  serveParent(app.server, () => null);
}

if (kind === 'http') bareHttp();
else await bareFastify();
