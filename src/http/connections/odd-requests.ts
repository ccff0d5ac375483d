import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { HttpRequestError } from '../../core/errors.ts';
import { dropBody } from '../body/early-body.ts';
import { bodyWanted } from '../body/read-body.ts';
import { allMethods } from '../route-methods.ts';
import { responseOn } from './node-internals.ts';
import { answerOnSocket } from './parser-errors.ts';

/** Node would answer a request without a Host header itself, in its own words; `refuseOddRequests` does it. */
export const nodeHttpOptions = { requireHostHeader: false } as const;

/** RFC 9112 3.2: two hosts are two opinions on whom the request is for. Node keeps the first in silence. */
function namesTwoHosts(rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count > 1;
}

const tooManyFields = (): HttpRequestError =>
  new HttpRequestError(431, 'The request has too many header fields.', 'headers_too_large');

/** As Apache and Envoy have it by default; SDKs behind proxies send thirty. Each costs 90 bytes, however short. */
export const maxHeaderFields = 100;

const hasTooManyFields = ({ rawHeaders }: IncomingMessage): boolean =>
  rawHeaders.length > 2 * maxHeaderFields;

function oddity({ headers, raw }: FastifyRequest): HttpRequestError | null {
  if (headers.host === undefined && raw.httpVersion !== '1.0') {
    return new HttpRequestError(400, 'The Host header is missing.', 'malformed_http');
  }
  if (namesTwoHosts(raw.rawHeaders)) {
    return new HttpRequestError(400, 'The Host header was sent more than once.', 'malformed_http');
  }
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') {
    return new HttpRequestError(417, 'Only "Expect: 100-continue" is understood.', 'expectation_failed');
  }
  return null;
}

/**
 * Brings into the envelope what Node would answer itself (RFC 9110 9.3.6 and 10.1.1, RFC 9112 3.2), and lets
 * `100 Continue` wait until the body is wanted, so that a refusal comes instead of it.
 */
export function refuseOddRequests(app: FastifyInstance): void {
  app.addHook('onRequest', (request: FastifyRequest, reply: FastifyReply, done) => {
    const error = hasTooManyFields(request.raw) ? tooManyFields() : oddity(request);
    // Of what comes behind an upgrade that nobody takes Node makes no requests: it would be read without end.
    if (request.headers.upgrade !== undefined) reply.header('connection', 'close');
    if (request.method === 'GET' || request.method === 'HEAD') dropBody(request.raw);
    if (error !== null) reply.header('connection', 'close');
    done(error ?? undefined);
  });
  const { server } = app;
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    request.once(bodyWanted, () => {
      if (!response.headersSent) response.writeContinue();
    });
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => refuseTunnel(socket));
}

/** Node has let go of the socket, and reads it no more. */
function refuseTunnel(socket: Duplex): void {
  socket.on('error', () => socket.destroy());
  // Between the chunks of an answer that is under way there is no place for another one.
  if (responseOn(socket) !== null) {
    socket.destroy();
    return;
  }
  // The client's end is only seen behind all that it has sent.
  socket.resume();
  const allow = { allow: allMethods.join(', ') };
  answerOnSocket(socket, new HttpRequestError(405, 'This is no proxy.', 'method_not_allowed', allow));
}
