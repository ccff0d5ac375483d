import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { StreamHead } from '../../../src/http/answers/answer-head.ts';
import { ChunkedWriter } from '../../../src/http/answers/chunked-writer.ts';
import { beginSlab, livingBytes } from '../../harness/measure/memory.ts';

type Write = (writer: ChunkedWriter, response: ServerResponse) => void;

let close = (): unknown => undefined;
afterEach(() => close());

/** A server that answers every request with the head of a stream and what `write` does. */
async function serving(
  write: Write,
  onClientError: (error: Error) => void = () => undefined,
): Promise<number> {
  const server = createServer((_request, response) => {
    const isChunked = new StreamHead({ 'content-type': 'text/event-stream' }).write(response, false);
    write(new ChunkedWriter(response, isChunked), response);
  });
  server.on('clientError', onClientError);
  close = () => server.close();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

/** All that comes on a connection that asks once and closes. */
async function answerTo(port: number, version: '1.0' | '1.1'): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET / HTTP/${version}\r\nHost: x\r\nConnection: close\r\n\r\n`);
  return await text(socket.setEncoding('latin1'));
}

const bodyOf = (answer: string): string => answer.slice(answer.indexOf('\r\n\r\n') + 4);
const latin1 = (given: string): string => Buffer.from(given).toString('latin1');

describe('the body of a stream', () => {
  test.each([
    ['bytes', ['data: 1\n\n'], '9\r\ndata: 1\n\n\r\n'],
    ['text beyond ASCII, by its bytes', ['é🙂'], `6\r\n${latin1('é🙂')}\r\n`],
    ['nothing, which is no chunk', [''], ''],
    ['more than is copied', ['x'.repeat(5000)], `1388\r\n${'x'.repeat(5000)}\r\n`],
    ['several', ['a', 'bb'], '1\r\na\r\n2\r\nbb\r\n'],
  ])('is written in chunks: %s', async (_what, parts, expected) => {
    for (const form of [Buffer.from, String]) {
      const port = await serving((writer) => {
        for (const part of parts) writer.write(form(part));
        writer.end('end');
      });
      const answer = await answerTo(port, '1.1');
      expect(answer).toMatch(/\r\ntransfer-encoding: chunked\r\n/i);
      expect(bodyOf(answer)).toBe(`${expected}3\r\nend\r\n0\r\n\r\n`);
      close();
    }
  });

  test('that ends without a word has its last chunk all the same', async () => {
    const port = await serving((writer) => writer.end(''));
    expect(bodyOf(await answerTo(port, '1.1'))).toBe('0\r\n\r\n');
  });

  test('that is cut has none', async () => {
    const port = await serving((writer, response) => {
      writer.write('data: 1\n\n');
      setImmediate(() => response.destroy());
    });
    expect(bodyOf(await answerTo(port, '1.1'))).toBe('9\r\ndata: 1\n\n\r\n');
  });

  test('goes as it is to a client that knows no chunks', async () => {
    const port = await serving((writer) => {
      writer.write(Buffer.from('data: 1\n\n'));
      writer.end('é');
    });
    const answer = await answerTo(port, '1.0');
    expect(answer).not.toMatch(/transfer-encoding/i);
    expect(bodyOf(answer)).toBe(`data: 1\n\n${latin1('é')}`);
  });
});

test.each(['1.1', '1.0'])(
  'hundreds of small pieces that an HTTP/%s client does not take keep no more memory than they are',
  async (version) => {
    const written = Promise.withResolvers<{ waiting: number; kept: number }>();
    const port = await serving((writer, response) => {
      const socket = response.socket as Socket;
      // All that the kernel takes, and more.
      writer.write(Buffer.alloc(16 * 1024 * 1024, 'x'));
      setImmediate(() => {
        const [before, kept] = [socket.writableLength, livingBytes()];
        for (let count = 0; count < 300; count += 1) {
          beginSlab();
          writer.write(Buffer.from(`data: ${'y'.repeat(100)}\n\n`));
        }
        written.resolve({ waiting: socket.writableLength - before, kept: livingBytes() - kept });
        response.destroy();
      });
    });
    const socket = connect(port, '127.0.0.1');
    socket.pause().write(`GET / HTTP/${version}\r\nHost: x\r\n\r\n`);
    const { waiting, kept } = await written.promise;
    socket.destroy();
    expect(waiting).toBeGreaterThan(300 * 100);
    // 20 MB where each keeps the slab that it was cut from; a Buffer and its place in the queue take half a kilobyte.
    expect(kept).toBeLessThan(1024 * 1024);
  },
);

test('a connection is used again behind its stream, and a slow reader is told', async () => {
  const told: boolean[] = [];
  const port = await serving((writer) => {
    told.push(writer.write(Buffer.alloc(4 * 1024 * 1024, 'x')));
    writer.end('y');
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ports = new Set<number | undefined>();
  for (let count = 0; count < 3; count += 1) {
    const sent = request({ port, host: '127.0.0.1', agent }).end();
    const [response] = await once(sent, 'response');
    expect(await text(response)).toHaveLength(4 * 1024 * 1024 + 1);
    ports.add(sent.socket?.localPort);
  }
  agent.destroy();
  expect(ports.size).toBe(1);
  expect(told).toEqual([false, false, false]);
});

test('a client that ends its side before it has read all is written to no more, which is no error', async () => {
  const errors: Error[] = [];
  const written = Promise.withResolvers<void>();
  const port = await serving(
    (writer, response) => {
      writer.write(Buffer.alloc(16 * 1024 * 1024, 'x'));
      response.socket?.once('end', () => {
        writer.write(Buffer.from('data: 2\n\n'));
        setImmediate(written.resolve);
      });
    },
    (error) => errors.push(error),
  );
  const socket = connect(port, '127.0.0.1');
  socket.pause().end('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await written.promise;
  socket.destroy();
  expect(errors).toEqual([]);
});
