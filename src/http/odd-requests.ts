import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { errorBody } from '../core/error-body.ts';
import { HttpRequestError } from '../core/errors.ts';
import { dropBody } from './early-body.ts';
import { bodyWanted } from './read-body.ts';
import { allMethods } from './route-methods.ts';

/** Node would answer a request without a Host header itself, in its own words; `refuseOddRequests` does it. */
export const nodeHttpOptions = { requireHostHeader: false } as const;

const parserErrors: Readonly<Record<string, readonly [number, string, string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The request headers are too large.', 'headers_too_large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not arrive in time.', 'request_timeout'],
  GW_TINY_CHUNKS: [400, 'The body comes in too many tiny chunks.', 'tiny_chunks'],
};

/** Answers where there is no request that Fastify could answer, in our envelope, and closes. */
function answerOnSocket(socket: Duplex, error: HttpRequestError): void {
  const requestId = randomUUID();
  const body = JSON.stringify(errorBody(error, requestId));
  const headers = {
    ...error.headers,
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': requestId,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const head = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ''}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/** Answers what Node's HTTP parser refuses, or its like. */
export function answerParserError(error: Error & { code?: string }, socket: Socket): void {
  // As Node's own handler does it: an answer that is under way cannot be followed by another one.
  const { _httpMessage: response } = socket as Socket & { readonly _httpMessage?: ServerResponse | null };
  if (error.code === 'ECONNRESET' || !socket.writable || response?.headersSent === true) {
    socket.destroy();
    return;
  }
  const [status, message, code] = parserErrors[error.code ?? ''] ?? [
    400,
    'Malformed HTTP.',
    'malformed_http',
  ];
  answerOnSocket(socket, new HttpRequestError(status, message, code));
}

/** RFC 9112 3.2: two hosts are two opinions on whom the request is for. Node keeps the first in silence. */
function namesTwoHosts(rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count > 1;
}

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
    const error = oddity(request);
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
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => socket.destroy());
    const allow = { allow: allMethods.join(', ') };
    answerOnSocket(socket, new HttpRequestError(405, 'This is no proxy.', 'method_not_allowed', allow));
  });
}
