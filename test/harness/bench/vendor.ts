import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { serveParent } from './worker.ts';
import { anthropicEvents, jsonAnswer, streamEvents } from './workload.ts';

/**
 * A model vendor whose answers were made beforehand, on bare sockets: with `node:http` it took more of the core that it
 * shares than the target takes of its own, which then waited for it. With the files of a certificate and its key as
 * arguments it speaks TLS.
 */

/** How the streams come that begin from now on. */
export interface Pace {
  /** Between events; 0: all at once, each written by itself. */
  readonly ms: number;
  /** Behind the first token all that is left comes together. */
  readonly restTogether?: true;
}

/** Events that come at once also where the others are apart: the role, and the first one with text. */
const beginning = 2;
let pace: Pace = { ms: 0 };

const headEnd = Buffer.from('\r\n\r\n');
const asksForStream = Buffer.from('"stream":true');
const messagesPath = Buffer.from('/messages HTTP/1.1');
const lengthField = /\r\ncontent-length: *(\d+)/i;
const lastChunk = Buffer.from('0\r\n\r\n');

const jsonHead = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${jsonAnswer.length}\r\n\r\n`;
const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n' +
  'transfer-encoding: chunked\r\n\r\n';
const wholeAnswer = Buffer.concat([Buffer.from(jsonHead), jsonAnswer]);
const openAiStream = onTheWire(streamEvents);
const anthropicStream = onTheWire(anthropicEvents);

/** Each event as a chunk; the first one behind the head, the last one before the end. */
function onTheWire(events: readonly Buffer[]): readonly Buffer[] {
  const chunks = events.map((event) =>
    Buffer.concat([Buffer.from(`${event.length.toString(16)}\r\n`), event, Buffer.from('\r\n')]),
  );
  const first = Buffer.concat([Buffer.from(streamHead), chunks[0] as Buffer]);
  return [first, ...chunks.slice(1, -1), Buffer.concat([chunks.at(-1) as Buffer, lastChunk])];
}

/** Where the request that `bytes` begin with ends; -1 while it is not whole. */
function requestEnd(bytes: Buffer): number {
  const end = bytes.indexOf(headEnd);
  if (end < 0) return -1;
  const length = Number(lengthField.exec(bytes.toString('latin1', 0, end))?.[1] ?? 0);
  const whole = end + headEnd.length + length;
  return bytes.length < whole ? -1 : whole;
}

function serve(socket: Socket): void {
  let pending: Buffer = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (bytes: Buffer) => {
    pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes]);
    const end = requestEnd(pending);
    if (end < 0) return;
    const request = pending.subarray(0, end);
    // One at a time: nobody here sends the next before the answer.
    pending = Buffer.alloc(0);
    if (request.includes(messagesPath)) stream(socket, anthropicStream);
    else if (request.includes(asksForStream)) stream(socket, openAiStream);
    else socket.write(wholeAnswer);
  });
}

function stream(socket: Socket, chunks: readonly Buffer[]): void {
  const { ms, restTogether = false } = pace;
  if (ms === 0) {
    for (const chunk of chunks) socket.write(chunk);
    return;
  }
  // The first token too: a timer would fire at the next millisecond of this process, how near ever that is.
  socket.write(Buffer.concat(chunks.slice(0, beginning)));
  let sent = beginning;
  const stop = (): void => clearInterval(timer);
  const timer = setInterval(() => {
    const next = restTogether ? chunks.length : sent + 1;
    for (const chunk of chunks.slice(sent, next)) socket.write(chunk);
    sent = next;
    if (sent < chunks.length) return;
    stop();
    socket.off('close', stop);
  }, ms);
  socket.once('close', stop);
}

const [certFile, keyFile] = process.argv.slice(2);
const server =
  certFile === undefined || keyFile === undefined
    ? createServer(serve)
    : createSecureServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, serve);

server.listen(0, '127.0.0.1', () => {
  serveParent(server, (asked: Pace) => {
    pace = asked;
    return null;
  });
});
