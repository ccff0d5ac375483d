import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorBody } from '../../core/error-body.ts';
import type { ErrorCode } from '../../core/error-codes.ts';
import { HttpRequestError } from '../../core/errors.ts';
import { TimedTurns } from '../../timed-turns.ts';
import { responseOn } from './node-internals.ts';

const tooLate = 'ERR_HTTP_REQUEST_TIMEOUT';
const parserErrors: Readonly<Record<string, readonly [number, string, ErrorCode<'invalid_request_error'>]>> =
  {
    HPE_HEADER_OVERFLOW: [431, 'The request headers are too large.', 'headers_too_large'],
    [tooLate]: [408, 'The request did not arrive in time.', 'request_timeout'],
    GW_TINY_CHUNKS: [400, 'The body comes in too many tiny chunks.', 'tiny_chunks'],
  };

/**
 * From such an answer to the end of its connection, whoever stays: Node has no timer for it any more. So much is enough
 * for a client far away to read some hundred bytes and close.
 */
const closingMs = 2_000;

/** Thousands of clients can be too late in the same look at all of them: so long in a turn they are answered. */
const lateTurnMs = 50;
const lateTurns = new TimedTurns(lateTurnMs);

/** It has its answer, and will be closed. A client that keeps its own side open would hold its place for ever. */
function closeSoon(socket: Duplex): void {
  const timer = setTimeout(() => lateTurns.run(() => socket.destroy()), closingMs).unref();
  socket.once('close', () => clearTimeout(timer));
}

/** Answers where there is no request that Fastify could answer, in our envelope, and closes. */
export function answerOnSocket(socket: Duplex, error: HttpRequestError): void {
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
  closeSoon(socket);
}

/** Answers what Node's HTTP parser refuses, or its like. */
export function answerParserError(error: Error & { code?: string }, socket: Socket): void {
  // Behind a request that closes its connection nothing counts (RFC 9112 section 9.6), its own answer does.
  if (error.code === 'HPE_CLOSED_CONNECTION') return;
  if (error.code === tooLate) lateTurns.run(() => answerOrClose(error, socket));
  else answerOrClose(error, socket);
}

function answerOrClose(error: Error & { code?: string }, socket: Socket): void {
  // As Node's own handler does it: an answer that is under way cannot be followed by another one.
  const isAnswered = !socket.writable || responseOn(socket)?.headersSent === true;
  // Whoever has said nothing has asked for nothing.
  const isSilent = error.code === tooLate && socket.bytesRead === 0;
  if (error.code === 'ECONNRESET' || isAnswered || isSilent) {
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
