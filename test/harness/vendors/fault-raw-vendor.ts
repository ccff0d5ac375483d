import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { openAiAnswer, openAiStream } from './openai-wire.ts';

/** Writes the answer to one whole request, byte by byte if it likes. */
export type RawPlan = (socket: Socket, request: string) => void;

/** A vendor below HTTP: it decides about connections and bytes. */
export interface RawVendor {
  readonly url: string;
  /** Whole requests as they came, heads included. */
  readonly requests: string[];
  /** Connections accepted since `clear`. */
  connections(): number;
  openSockets(): Socket[];
  always(plan: RawPlan): void;
  /** Done with each new connection before a byte is read. */
  onAccept(action: (socket: Socket) => void): void;
  /** From now on connections are refused, until `listenAgain`. */
  stopListening(): Promise<void>;
  listenAgain(): Promise<void>;
  /** Healthy again, ledger empty, all sockets closed. */
  clear(): void;
  close(): Promise<void>;
}

function asksStream(request: string): boolean {
  return /"stream":true/.test(request);
}

const head = (status: string, type: string) => `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\n`;
const chunked = 'transfer-encoding: chunked\r\n\r\n';

function chunk(text: string | Buffer): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

/** The head of a stream, and its first `tokens` tokens. */
export function openRawStream(socket: Socket, tokens: number): void {
  const text = Array.from({ length: tokens }, (_, index) => `t${index} `);
  const events = openAiStream('gpt-test-small', { text: [...text, 'never sent'] });
  socket.write(head('200 OK', 'text/event-stream') + chunked);
  for (const event of events.slice(0, tokens + 1)) socket.write(chunk(event));
}

/** A whole answer, JSON or stream as asked; the connection stays open. */
export const healthy: RawPlan = (socket, request) => {
  if (asksStream(request)) {
    const events = openAiStream('gpt-test-small').map(chunk);
    socket.write(head('200 OK', 'text/event-stream') + chunked);
    socket.write(Buffer.concat([...events, chunk('')]));
    return;
  }
  const body = JSON.stringify(openAiAnswer('gpt-test-small'));
  socket.write(
    `${head('200 OK', 'application/json')}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
};

/** Exactly these bytes. */
export function bytes(text: string): RawPlan {
  return (socket) => void socket.write(text);
}

/** The same bytes again and again, for as long as the peer reads. */
export function endless(first: string, piece: string | Buffer): RawPlan {
  return (socket) => {
    socket.write(first);
    const more = (): void => {
      while (!socket.destroyed && socket.write(piece));
      socket.once('drain', more);
    };
    more();
  };
}

/** A 200 whose gzipped body is a healthy answer in `zeros` bytes of blanks: few bytes on the wire, many unpacked. */
export function gzipped(zeros: number): RawPlan {
  const body = gzipSync(
    Buffer.concat([Buffer.alloc(zeros, ' '), Buffer.from(JSON.stringify(openAiAnswer('gpt-test-small')))]),
  );
  return (socket) => {
    const type = head('200 OK', 'application/json');
    socket.write(`${type}content-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`);
    socket.write(body);
  };
}

/** The length that the head of a request promises. */
function wholeLength(text: string): number {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return Number.POSITIVE_INFINITY;
  return end + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
}

/** Starts a raw vendor on a free port of 127.0.0.1. */
export async function startRawVendor(): Promise<RawVendor> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  let accepted = 0;
  let plan = healthy;
  let greet: (socket: Socket) => void = () => {};
  const serve = (socket: Socket): void => {
    accepted += 1;
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    greet(socket);
    let text = '';
    socket.on('data', (data) => {
      text += data.toString('latin1');
      const length = wholeLength(text);
      if (text.length < length) return;
      const request = text.slice(0, length);
      text = text.slice(length);
      requests.push(request);
      plan(socket, request);
    });
  };
  const open = async (port: number): Promise<Server> => {
    const listener = createServer(serve);
    listener.listen(port, '127.0.0.1');
    await once(listener, 'listening');
    return listener;
  };
  let server = await open(0);
  const { port } = server.address() as AddressInfo;
  const destroyAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const stopListening = async (): Promise<void> => {
    const closed = once(server, 'close');
    server.close();
    destroyAll();
    await closed;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    connections: () => accepted,
    openSockets: () => [...sockets],
    always: (next) => {
      plan = next;
    },
    onAccept: (action) => {
      greet = action;
    },
    stopListening,
    listenAgain: async () => {
      server = await open(port);
    },
    clear: () => {
      plan = healthy;
      greet = () => {};
      requests.length = 0;
      accepted = 0;
      destroyAll();
    },
    close: stopListening,
  };
}
