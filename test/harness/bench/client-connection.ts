import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { EVENTS_PER_STREAM } from './workload.ts';

const headEnd = Buffer.from('\r\n\r\n');
const eventMark = Buffer.from('\n\n');
const newline = 0x0a;
const wholeStream = Buffer.from('data: [DONE]\n\n\r\n0\r\n\r\n');
const chunkedEnd = Buffer.from('\r\n0\r\n\r\n');
const statusAt = 'HTTP/1.1 '.length;
const lengthField = /\r\ncontent-length: *(\d+)/i;

/** Reads one answer and checks it: 200; a stream has its events and its end. What it is chunked into is not looked at. */
class Answer {
  events = 0;
  #head: Buffer = Buffer.alloc(0);
  /** Of a body of known length; null: it is chunked. */
  #left: number | null = 0;
  #hasHead = false;
  #tail: Buffer = Buffer.alloc(0);

  /** True when it is whole. Throws when it is not what was asked for. */
  push(bytes: Buffer): boolean {
    if (this.#hasHead) return this.#pushBody(bytes);
    const all = this.#head.length === 0 ? bytes : Buffer.concat([this.#head, bytes]);
    const end = all.indexOf(headEnd);
    this.#head = all;
    if (end < 0) return false;
    this.#hasHead = true;
    const head = all.toString('latin1', 0, end);
    if (!head.startsWith('200', statusAt)) throw new Error(`answered ${head.slice(statusAt, statusAt + 3)}`);
    const length = lengthField.exec(head)?.[1];
    this.#left = length === undefined ? null : Number(length);
    return this.#pushBody(all.subarray(end + headEnd.length));
  }

  #pushBody(bytes: Buffer): boolean {
    if (this.#left === null) return this.#pushChunks(bytes);
    this.#left -= bytes.length;
    if (this.#left < 0) throw new Error('bytes behind an answer');
    return this.#left === 0;
  }

  #pushChunks(bytes: Buffer): boolean {
    // A mark may be cut in two by the network.
    if (this.#tail.at(-1) === newline && bytes[0] === newline) this.events += 1;
    let from = bytes.indexOf(eventMark);
    for (; from >= 0; from = bytes.indexOf(eventMark, from + 2)) this.events += 1;
    const tail = bytes.length < wholeStream.length ? Buffer.concat([this.#tail, bytes]) : bytes;
    // Reads are into memory of their own each, which would be kept.
    this.#tail = Buffer.from(tail.subarray(-wholeStream.length));
    if (!this.#tail.subarray(-chunkedEnd.length).equals(chunkedEnd)) return false;
    if (!this.#tail.equals(wholeStream)) throw new Error('a stream without its end');
    if (this.events < EVENTS_PER_STREAM) throw new Error(`a stream of ${this.events} events`);
    return true;
  }
}

interface Exchange {
  readonly answer: Answer;
  /** Called with every part. */
  readonly onPart: ((events: number) => void) | null;
  done(): void;
  fail(error: Error): void;
}

/** One client: a request at a time, on a bare socket, so that the load costs less than what it is put on. */
export class ClientConnection {
  readonly #hostname: string;
  readonly #port: number;
  #socket: Socket | null = null;
  #exchange: Exchange | null = null;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#hostname = hostname;
    this.#port = Number(port);
  }

  /** Sends the bytes of a request. Resolves when its answer is whole; `onPart` is told the events that there are. */
  exchange(request: Buffer, onPart: ((events: number) => void) | null = null): Promise<void> {
    return new Promise((done, fail) => {
      this.#exchange = { answer: new Answer(), onPart, done, fail };
      this.#socket ??= this.#open();
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket?.destroy();
  }

  #open(): Socket {
    const socket = connect(this.#port, this.#hostname);
    socket.setNoDelay(true);
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    socket.on('error', (error) => this.#end(error));
    socket.on('close', () => {
      this.#socket = null;
      this.#end(new Error('the connection was closed'));
    });
    return socket;
  }

  #read(bytes: Buffer): void {
    const exchange = this.#exchange;
    if (exchange === null) return void this.#socket?.destroy();
    try {
      const isWhole = exchange.answer.push(bytes);
      exchange.onPart?.(exchange.answer.events);
      if (isWhole) this.#end(null);
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #end(error: Error | null): void {
    const exchange = this.#exchange;
    this.#exchange = null;
    if (error === null) exchange?.done();
    else exchange?.fail(error);
  }
}
