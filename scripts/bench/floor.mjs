import { createServer } from 'node:http';
import fastify from 'fastify';
import { Pool } from 'undici';
import { serveParent } from './worker.mjs';

/**
 * What no gateway on this stack can be below: it takes the body as bytes, sends it on, and writes what comes back.
 * `node floor.mjs http|fastify <vendor>`; the gateway is measured against the one with Fastify.
 */

const [kind, vendor] = process.argv.slice(2);
const path = '/v1/chat/completions';
const pool = new Pool(vendor, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });

/** One exchange: undici's handler on one side, the raw response on the other, no stream between. */
class Relay {
  #response;
  #controller = null;

  constructor(response) {
    this.#response = response;
    response.once('close', () => {
      if (!response.writableFinished) this.#controller?.abort(new Error('the client left'));
    });
  }

  onRequestStart(controller) {
    this.#controller = controller;
  }

  onResponseStart(_controller, status, headers) {
    const head = { 'content-type': headers['content-type'] };
    if (headers['content-length'] !== undefined) head['content-length'] = headers['content-length'];
    this.#response.writeHead(status, head);
  }

  onResponseData(controller, bytes) {
    if (this.#response.write(bytes)) return;
    controller.pause();
    this.#response.once('drain', () => controller.resume());
  }

  onResponseEnd() {
    this.#response.end();
  }

  onResponseError() {
    this.#response.destroy();
  }
}

function forward(body, headers, response) {
  const sent = {
    'content-type': 'application/json',
    authorization: headers['authorization'],
  };
  pool.dispatch({ path, method: 'POST', headers: sent, body }, new Relay(response));
}

function bareHttp() {
  const server = createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => forward(Buffer.concat(parts), request.headers, response));
  });
  server.listen(0, '127.0.0.1', () => serveParent(server, () => null));
}

async function bareFastify() {
  const app = fastify({ logger: false });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.post(path, (request, reply) => {
    reply.hijack();
    forward(request.body, request.headers, reply.raw);
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  serveParent(app.server, () => null);
}

if (kind === 'http') bareHttp();
else await bareFastify();
