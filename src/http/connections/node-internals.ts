import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex, Readable } from 'node:stream';
import { headText } from '../answers/head-text.ts';

/**
 * What we rest on of Node that its documentation does not have, read in lib/_http_server.js and lib/_http_incoming.js
 * of Node 22.19 and 24.21:
 *
 * - `socket._httpMessage`: the response that a connection is at, null between two (`assignSocket`, `detachSocket`).
 * - A response emits `socket` when it is its turn on its connection (`assignSocket`); `turns.ts` waits for it.
 * - The parser hands each chunk of a body to `message.push`, and null at the end; `measured-message.ts` overrides it.
 * - It lets go of a connection whose message says `upgrade` where nobody takes upgrades.
 * - A response whose body comes in chunks has `chunkedEncoding` once its head is written; without it, what is written
 *   goes out as it is, and its end adds nothing.
 * - `socket._handle` counts what was written to the system (`bytesWritten`) and what of it waits (`writeQueueSize`). It
 *   is there while the connection is, so that only tests look for it.
 * - When an answer is out, a message with `readableEnded` is let go of with all that its client sent.
 * - `response._header` is the head that goes out with the first bytes of the body, and beside it nothing is made of a
 *   head but what `keptSeconds` asks for.
 *
 * `checkNodeInternals` looks for their names at start, so that under a Node that has others the gateway does not begin,
 * instead of forgetting who reads its answers. What they do is judged by the tests of those files.
 */

type ServerSocket = Duplex & { readonly _httpMessage?: ServerResponse | null };

/** The response that is under way on a server's connection; null between two. */
export function responseOn(socket: Duplex): ServerResponse | null {
  return (socket as ServerSocket)._httpMessage ?? null;
}

interface CountingHandle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
}

/** What the system has taken of all that was written on this connection; 0 once it is closed. */
export function takenBytes(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { readonly _handle?: CountingHandle | null };
  return handle == null ? 0 : handle.bytesWritten - handle.writeQueueSize;
}

/** Whatever Node's parser says of the message, it is an upgrade. */
export function passForUpgrade(message: IncomingMessage): void {
  Object.defineProperty(message, 'upgrade', { get: () => true, set: () => undefined });
}

/**
 * True where Node announced that the body of this response comes in chunks: from here on its writer makes them, the
 * last one too. False for clients that know none.
 */
export function takeOverChunks(response: ServerResponse): boolean {
  if (!response.chunkedEncoding) return false;
  response.chunkedEncoding = false;
  return true;
}

type HeadedResponse = ServerResponse & {
  _header: string | null;
  readonly _keepAliveTimeout: number;
  readonly _expect_continue: boolean;
  readonly _sent100: boolean;
};

/** So long its connection is kept, as Node tells the client; null where it would say, or do, anything else. */
export function keptSeconds(response: ServerResponse): number | null {
  const { shouldKeepAlive, _keepAliveTimeout, _expect_continue, _sent100 } = response as HeadedResponse;
  // Where the client waits for a 100 that was not sent, nobody knows what comes next on its connection.
  if (!shouldKeepAlive || (_expect_continue && !_sent100)) return null;
  return Math.floor(_keepAliveTimeout / 1000);
}

/** Gives a response of status 200 its whole head, from the status line to the empty line. */
export function setHead(response: ServerResponse, head: string): void {
  response.statusMessage = 'OK';
  (response as HeadedResponse)._header = head;
}

const streamEnded = Object.getOwnPropertyDescriptor(Readable.prototype, 'readableEnded');

/** Messages of this class have ended when `wasRead` says so, too. */
export function endWhenRead<T extends IncomingMessage>(
  messageClass: { readonly prototype: T },
  wasRead: (message: T) => boolean,
): void {
  Object.defineProperty(messageClass.prototype, 'readableEnded', {
    get(this: T): boolean {
      return wasRead(this) || (streamEnded?.get?.call(this) as boolean);
    },
  });
}

/** Whether Node's own head of a kept connection is the one that `headText` makes, by what `keptSeconds` reads. */
function writesHeadAsWeDo(message: IncomingMessage): boolean {
  const response = new ServerResponse(message) as HeadedResponse & { _keepAliveTimeout: number };
  response._keepAliveTimeout = 4_000;
  const seconds = keptSeconds(response);
  const isAsked = response._expect_continue !== false || response._sent100 !== false;
  response.writeHead(200, { 'content-length': '1' });
  const { _header: head } = response;
  const date = /^Date: (.*)\r$/m.exec(head ?? '')?.[1] ?? '';
  return seconds === 4 && !isAsked && head === headText('content-length: 1\r\n', date, seconds);
}

/** What of the above is there, by its name. */
function found(): Readonly<Record<string, boolean>> {
  const socket = new Duplex() as Socket;
  const message = new IncomingMessage(socket);
  [message.httpVersionMajor, message.httpVersionMinor] = [1, 1];
  const response = new ServerResponse(message);
  let turns = 0;
  response.once('socket', () => {
    turns += 1;
  });
  const seen = [responseOn(socket)];
  response.assignSocket(socket);
  seen.push(responseOn(socket));
  response.detachSocket(socket);
  seen.push(responseOn(socket));
  response.writeHead(200);
  return {
    'socket._httpMessage': seen[0] === null && seen[1] === response && seen[2] === null,
    'the event "socket" of responses': turns === 1,
    'response.chunkedEncoding': takeOverChunks(response) && !takeOverChunks(response),
    'response._header': writesHeadAsWeDo(message),
    'message.push': typeof message.push === 'function',
    'message.upgrade': Object.hasOwn(message, 'upgrade'),
    'message.readableEnded': streamEnded?.get !== undefined,
  };
}

/** Throws where this Node lacks one of them. */
export function checkNodeInternals(): void {
  const lacked = Object.entries(found()).flatMap(([name, is]) => (is ? [] : [name]));
  if (lacked.length === 0) return;
  throw new Error(`Node ${process.versions.node} no longer has ${lacked.join(', ')}. Use Node 24.`);
}
