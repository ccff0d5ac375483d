import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';

/**
 * Clients that write their whole body before they read (Python's http.client) see a refusal only if the rest
 * of it is taken: closing at once makes the kernel reset the connection and lose the answer. A body several
 * times the limit is taken; nothing waits for a client that has stopped, or drips.
 */
const mostBytes = 64 * 1024 * 1024;
const idleMs = 2_000;
/** What has to come in that time: who drips keeps its request, and all that is in its head, for nothing. */
const leastBytes = 16 * 1024;
const longestMs = 20_000;

/** True where a body comes with these headers, or came. */
export function announcesBody(headers: IncomingMessage['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** True while there is body still to come. */
export function isBodyComing(raw: IncomingMessage): boolean {
  return !raw.complete && !raw.destroyed && announcesBody(raw.headers);
}

/** Writes a whole answer at once, then reads and discards what the client still sends, within limits. */
export function answerEarly(request: FastifyRequest, reply: FastifyReply, body: string): void {
  const { raw } = request;
  reply.hijack();
  const response = reply.raw;
  // A client that waits for "100 Continue" never sends that body: the connection cannot be used again.
  if (raw.headers.expect !== undefined) reply.header('connection', 'close');
  response.writeHead(reply.statusCode, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-length': Buffer.byteLength(body),
  });
  response.write(body);
  request.earlyBody?.take();
  const stopAtMs = performance.now() + longestMs;
  let left = mostBytes;
  let sinceRefresh = 0;
  const timer = setTimeout(() => response.destroy(), idleMs);
  raw.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    sinceRefresh += chunk.length;
    if (left < 0 || performance.now() > stopAtMs) return void response.destroy();
    if (sinceRefresh < leastBytes) return;
    sinceRefresh = 0;
    timer.refresh();
  });
  raw.once('end', () => response.end());
  response.once('close', () => clearTimeout(timer));
}
