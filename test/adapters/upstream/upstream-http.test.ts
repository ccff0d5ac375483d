import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttpServer } from 'node:http';
import type { Socket } from 'node:net';
import { createServer as createTcpServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { UpstreamHttp } from '../../../src/adapters/upstream/upstream-http-port.ts';
import type { TransportFailure, UpstreamCall, UpstreamControl } from '../../../src/chat/ports.ts';
import { outboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import { createUpstream, testsUndici, toldAddressClass } from '../../harness/gateway/upstream-client.ts';
import { untilStill } from '../../harness/measure/eventually.ts';
import { callTo, listen } from './local-server.ts';

function open(policy = outboundPolicy('allow-private', [], [])): UpstreamHttp {
  const upstream = createUpstream(policy);
  onTestFinished(() => upstream.close());
  return upstream;
}

const httpServer = (answer: (request: IncomingMessage, response: ServerResponse) => void) =>
  listen(createHttpServer(answer));

/** Speaks raw bytes: `answer` runs once per request, which is taken to come in one piece or end with `}`. */
const tcpServer = (answer: (socket: Socket, count: number) => void) => {
  let count = 0;
  return listen(
    createTcpServer((socket) => {
      socket.on('data', (bytes) => {
        if (!bytes.toString().endsWith('}')) return;
        count += 1;
        answer(socket, count);
      });
    }),
  );
};

const raw = (body: string, headers = ''): string =>
  `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;

/** One call and everything its listener was told. */
class Sent {
  status = 0;
  heads = 0;
  headers: Readonly<Record<string, string | string[] | undefined>> = {};
  bytes = 0;
  readonly parts: Buffer[] = [];
  /** What came after the call was over: always nothing. */
  late = 0;
  readonly control: UpstreamControl;
  readonly head: Promise<void>;
  readonly over: Promise<TransportFailure | 'end'>;

  constructor(upstream: UpstreamHttp, call: UpstreamCall) {
    let headed = (): void => undefined;
    let ended = (_end: TransportFailure | 'end'): void => undefined;
    this.head = new Promise((resolve) => {
      headed = resolve;
    });
    this.over = new Promise((resolve) => {
      ended = resolve;
    });
    let isOver = false;
    const end = (how: TransportFailure | 'end'): void => {
      if (isOver) this.late += 1;
      isOver = true;
      ended(how);
    };
    this.control = upstream.send(call, {
      onHead: ({ status, headers }) => {
        this.status = status;
        this.headers = headers;
        this.heads += 1;
        headed();
      },
      onData: (chunk) => {
        if (isOver) this.late += 1;
        this.bytes += chunk.length;
        this.parts.push(chunk);
      },
      onEnd: () => end('end'),
      onFailure: end,
    });
  }

  /** Ended well, and the socket is back in its pool. */
  async done(): Promise<void> {
    expect(await this.over).toBe('end');
    await new Promise(setImmediate);
  }

  get text(): string {
    return Buffer.concat(this.parts).toString();
  }

  async kind(): Promise<string> {
    const end = await this.over;
    return end === 'end' ? end : end.kind;
  }
}

describe('a call', () => {
  test('is a POST with the given path, headers and body, and its answer comes as it is', async () => {
    const seen: string[] = [];
    const { origin } = await httpServer(async (request, response) => {
      let body = '';
      for await (const part of request) body += String(part);
      seen.push(`${request.method} ${request.url} ${request.headers.authorization} ${body}`);
      response.writeHead(201, { 'x-vendor': 'yes' }).end('{"ok":true}');
    });
    const sent = new Sent(open(), callTo(origin));
    expect(await sent.over).toBe('end');
    expect(seen).toEqual(['POST /v1/chat/completions Bearer k {"a":1}']);
    expect([sent.status, sent.headers['x-vendor'], sent.text]).toEqual([201, 'yes', '{"ok":true}']);
  });

  test('with a body of many megabytes as bytes brings all of them, in order', async () => {
    const body = Buffer.alloc(9 * 1024 * 1024 + 1, 'A part of a long prompt. ');
    const seen: Buffer[] = [];
    const { origin } = await httpServer((request, response) => {
      request.on('data', (part: Buffer) => seen.push(part)).on('end', () => response.end('x'));
    });
    expect(await new Sent(open(), callTo(origin, { body })).over).toBe('end');
    expect(Buffer.concat(seen).equals(body)).toBe(true);
  });

  // undici writes the next request behind what is left of this one.
  const ownTest = testsUndici() ? () => undefined : test;
  ownTest(
    'that is answered before its body was read ends its socket: the rest may still be sent',
    async () => {
      const { origin, accepted } = await listen(
        createTcpServer((socket) => {
          socket.once('data', () => socket.pause().write(raw('x')));
        }),
      );
      const upstream = open();
      for (let count = 0; count < 2; count += 1) {
        const sent = new Sent(upstream, callTo(origin, { body: Buffer.alloc(64 * 1024 * 1024, '{') }));
        expect([await sent.over, sent.text]).toEqual(['end', 'x']);
      }
      expect(accepted).toHaveLength(2);
    },
  );

  test('uses the socket of the one before', async () => {
    const { origin, accepted } = await httpServer((_request, response) => response.end('x'));
    const upstream = open();
    for (let count = 0; count < 3; count += 1) await new Sent(upstream, callTo(origin)).done();
    expect(accepted).toHaveLength(1);
  });

  test('tells what its socket leads to, a kept one too, until nothing is left of it', async () => {
    const { origin, accepted, close } = await httpServer((_request, response) => response.end('x'));
    const upstream = open();
    for (let count = 0; count < 2; count += 1) {
      const sent = new Sent(upstream, callTo(origin));
      await sent.done();
      // The client of the release before does not tell.
      expect(sent.control.addressClass).toBe(toldAddressClass());
    }
    expect(accepted).toHaveLength(1);
    close();
    const refused = new Sent(open(), callTo(origin));
    expect(await refused.kind()).toBe('connect-refused');
    expect(refused.control.addressClass).toBeNull();
  });

  test('to an address that a user gave never uses the socket of a vendor', async () => {
    const { origin, accepted } = await httpServer((_request, response) => response.end('x'));
    const upstream = open();
    for (const userAddress of [false, true]) await new Sent(upstream, callTo(origin, { userAddress })).done();
    expect(accepted).toHaveLength(2);
  });

  test('outside of the residency asked for is never made', async () => {
    const { origin, accepted } = await httpServer((_request, response) => response.end('x'));
    const upstream = open();
    const call = callTo(origin, { residencyBound: 'india' });
    expect(() => new Sent(upstream, call)).toThrow(/residency/);
    await new Sent(upstream, callTo(origin, { residencyBound: 'india', residency: 'india' })).over;
    expect(accepted).toHaveLength(1);
  });

  test('is not redirected: the key goes nowhere else', async () => {
    const elsewhere = await httpServer((_request, response) => response.end('stolen'));
    const { origin } = await httpServer((_request, response) =>
      response.writeHead(307, { location: `${elsewhere.origin}/` }).end('moved'),
    );
    const sent = new Sent(open(), callTo(origin));
    expect(await sent.over).toBe('end');
    expect([sent.status, sent.text]).toEqual([307, 'moved']);
    expect(elsewhere.accepted).toHaveLength(0);
  });

  test('to a forbidden address fails without a connection', async () => {
    const { origin, accepted } = await httpServer((_request, response) => response.end('x'));
    const upstream = open(outboundPolicy('public-only', [], []));
    expect(await new Sent(upstream, callTo(origin, { userAddress: true })).kind()).toBe('forbidden-address');
    expect(accepted).toHaveLength(0);
  });

  test.each(['x\r\nevil: 1', 'x\u0000'])('with a header value of %j never leaves', async (value) => {
    const { origin, accepted } = await httpServer((_request, response) => response.end('x'));
    const sent = new Sent(open(), callTo(origin, { headers: { authorization: value } }));
    expect(await sent.kind()).toBe('protocol');
    expect(accepted).toHaveLength(0);
  });
});

describe('a failure', () => {
  test('to connect is connect-refused', async () => {
    const { origin, close } = await httpServer(() => undefined);
    close();
    const end = await new Sent(open(), callTo(origin)).over;
    expect(end).toEqual({ kind: 'connect-refused', message: 'The connection was refused.' });
  });

  test('to resolve the name is dns', async () => {
    expect(await new Sent(open(), callTo('http://nowhere.invalid')).kind()).toBe('dns');
  });

  test('to speak TLS is tls', async () => {
    const { origin } = await listen(createTcpServer((socket) => socket.end('no TLS here')));
    const end = await new Sent(open(), callTo(origin.replace('http:', 'https:'))).over;
    expect(end).toEqual({
      kind: 'tls',
      message: 'The TLS handshake failed (ERR_SSL_WRONG_VERSION_NUMBER).',
    });
  });

  test.each<[name: string, answer: (socket: Socket) => void, kind: string]>([
    ['by closing without an answer', (socket) => socket.end(), 'reset'],
    ['by a reset without an answer', (socket) => socket.resetAndDestroy(), 'reset'],
    ['by closing within the headers', (socket) => socket.end('HTTP/1.1 200 OK\r\nx: '), 'reset'],
    [
      'by closing within the body',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc'),
      'reset',
    ],
    [
      'by closing within a chunked body',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n'),
      'reset',
    ],
    ['by something that is not HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'), 'protocol'],
    [
      'by a broken chunk size',
      (socket) => socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'),
      'protocol',
    ],
    [
      'by two lengths',
      (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'),
      'protocol',
    ],
    [
      'by endless headers',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(1000)}\r\n`.repeat(70)}\r\n`),
      'too-large',
    ],
  ])('%s is of its kind, and is told once', async (_name, answer, kind) => {
    const { origin } = await tcpServer(answer);
    const sent = new Sent(open(), callTo(origin));
    const end = (await sent.over) as TransportFailure;
    expect(end.kind).toBe(kind);
    expect(end.message).not.toMatch(/127\.0\.0\.1/);
    await new Promise(setImmediate);
    expect(sent.late).toBe(0);
  });
});

describe('a kept-alive socket', () => {
  const rounds = 50;
  /** From where in a turn of the event loop the call is made. */
  const phases: readonly [name: string, reach: () => Promise<unknown>][] = [
    ['a microtask', () => Promise.resolve()],
    ['a timer', () => new Promise((resolve) => setTimeout(resolve, 0))],
    ['an immediate', () => new Promise((resolve) => setImmediate(resolve))],
    ['a read', () => stat(import.meta.filename)],
  ];

  test.each(phases)('that the vendor has closed is not written to: called from %s', async (_name, reach) => {
    const { origin, accepted } = await tcpServer((socket) => socket.write(raw('one')));
    const upstream = open();
    await new Sent(upstream, callTo(origin)).done();
    for (let round = 1; round <= rounds; round += 1) {
      const close = () => accepted.at(-1)?.destroy();
      await reach();
      // Before or after the call is handed over, in the same turn: either way before it is written.
      if (round % 2 === 0) close();
      const sent = new Sent(upstream, callTo(origin));
      if (round % 2 === 1) close();
      await sent.done();
      expect(accepted).toHaveLength(round + 1);
    }
  });

  test('that the vendor is known to have closed is not used', async () => {
    const { origin, accepted } = await tcpServer((socket, count) => socket.end(raw(`answer ${count}`)));
    const upstream = open();
    for (const text of ['answer 1', 'answer 2']) {
      const sent = new Sent(upstream, callTo(origin));
      await sent.done();
      expect(sent.text).toBe(text);
    }
    expect(accepted).toHaveLength(2);
  });

  test('that the vendor closes between the last look and the write is a reset: nobody knows what it read', async () => {
    const { origin, accepted } = await tcpServer((socket) => socket.write(raw('one')));
    const upstream = open();
    await new Sent(upstream, callTo(origin)).done();
    const closeInNextTurn = () => void setImmediate(() => accepted[0]?.destroy());
    setImmediate(closeInNextTurn);
    expect(await new Sent(upstream, callTo(origin)).kind()).toBe('reset');
    expect(accepted).toHaveLength(1);
  });

  test.each<[name: string, end: (socket: Socket) => void]>([
    ['closed', (socket) => socket.end()],
    ['reset', (socket) => socket.resetAndDestroy()],
    ['closed after an interim answer', (socket) => socket.end('HTTP/1.1 103 Early Hints\r\n\r\n')],
    [
      'closed after the first byte of an answer',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc'),
    ],
  ])('that is %s by a vendor that has read the request never carries it twice', async (_name, end) => {
    let answered = false;
    const { origin } = await tcpServer((socket) => {
      answered = !answered;
      if (answered) socket.write(raw('one'));
      else end(socket);
    });
    const upstream = open();
    for (let round = 0; round < rounds; round += 1) {
      await new Sent(upstream, callTo(origin)).done();
      // Had the vendor got it once more, this one would have been answered.
      expect(await new Sent(upstream, callTo(origin)).kind()).toBe('reset');
    }
  });
});

describe('an interim answer', () => {
  test.each([
    ['103', 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'],
    ['102', 'HTTP/1.1 102 Processing\r\n\r\n'],
    ['several', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(3)],
  ])('of %s is ignored', async (_name, interim) => {
    const { origin } = await tcpServer((socket) => socket.write(interim + raw('answer')));
    const sent = new Sent(open(), callTo(origin));
    expect(await sent.over).toBe('end');
    expect([sent.status, sent.heads, sent.text]).toEqual([200, 1, 'answer']);
  });

  test('after seventeen others is a failure: the vendor would go on for ever', async () => {
    const { origin } = await tcpServer((socket) =>
      socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(17)),
    );
    expect(await new Sent(open(), callTo(origin)).kind()).toBe('protocol');
  });

  test('that switches protocols is a failure', async () => {
    const answer = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n';
    const { origin } = await tcpServer((socket) => socket.write(answer));
    const sent = new Sent(open(), callTo(origin));
    expect(['protocol', 'reset']).toContain(await sent.kind());
    expect(sent.heads).toBe(0);
  });
});

describe('a compressed answer', () => {
  const text = 'data: {"text":"नमस्ते"}\n\n'.repeat(500);

  test('is decoded', async () => {
    const { origin } = await httpServer((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(text)),
    );
    const sent = new Sent(open(), callTo(origin));
    expect(await sent.over).toBe('end');
    expect(sent.text).toBe(text);
  });

  test.each(['gzip, gzip', 'identity, gzip', 'zstd'])(
    'in %j is refused before a byte is decoded',
    async (coding) => {
      const { origin } = await httpServer((_request, response) =>
        response.writeHead(200, { 'content-encoding': coding }).end(gzipSync(gzipSync(text))),
      );
      const sent = new Sent(open(), callTo(origin));
      expect(await sent.kind()).toBe('unknown-coding');
      expect([sent.heads, sent.bytes]).toEqual([0, 0]);
    },
  );

  test.each(['identity', 'Identity', 'none', ' NONE ', ''])('in %j is not compressed', async (coding) => {
    const { origin } = await httpServer((_request, response) =>
      response.writeHead(200, { 'content-encoding': coding }).end(text),
    );
    const sent = new Sent(open(), callTo(origin));
    expect(await sent.over).toBe('end');
    expect(sent.text).toBe(text);
  });

  test('that is none is a failure', async () => {
    const { origin } = await httpServer((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end('plain'),
    );
    expect(await new Sent(open(), callTo(origin)).kind()).toBe('protocol');
  });

  test('that is cut by a reset says nothing more afterwards', async () => {
    const zipped = gzipSync(Buffer.alloc(4 * 1024 * 1024, 'x'), { level: 0 });
    const { origin } = await httpServer((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': zipped.length * 2 });
      response.write(zipped, () => response.socket?.resetAndDestroy());
    });
    const sent = new Sent(open(), callTo(origin));
    expect(await sent.kind()).toBe('reset');
    expect(await untilStill(() => sent.late, 50)).toBe(0);
  });
});

describe('an aborted call', () => {
  test('never connects when it is aborted at once', async () => {
    const { origin, accepted } = await httpServer((_request, response) => response.end('x'));
    const sent = new Sent(open(), callTo(origin));
    sent.control.abort();
    expect(await sent.kind()).toBe('aborted');
    expect(accepted).toHaveLength(0);
  });

  test('closes its socket at once and fails as aborted, once', async () => {
    const { origin, accepted } = await httpServer(
      (_request, response) => void response.writeHead(200).write('x'),
    );
    const sent = new Sent(open(), callTo(origin));
    await sent.head;
    const closed = once(accepted[0] as Socket, 'close');
    sent.control.abort();
    sent.control.abort();
    expect(await sent.kind()).toBe('aborted');
    await closed;
    expect([sent.late, sent.control.isSent]).toEqual([0, true]);
  });

  test('before its connection is there sends nothing', async () => {
    const seen: unknown[] = [];
    const { origin } = await httpServer((request) => seen.push(request));
    const sent = new Sent(open(), callTo(origin));
    sent.control.abort();
    expect(await sent.kind()).toBe('aborted');
    expect([seen, sent.control.isSent]).toEqual([[], false]);
  });

  test('that had ended stays ended, and its socket serves the next one', async () => {
    const { origin, accepted } = await httpServer((_request, response) => response.end('x'));
    const upstream = open();
    const sent = new Sent(upstream, callTo(origin));
    await sent.done();
    sent.control.abort();
    await new Sent(upstream, callTo(origin)).done();
    expect([sent.late, accepted.length]).toEqual([0, 1]);
  });
});

test.each([
  ['plain', undefined],
  ['gzip', 'gzip'],
])('a paused call (%s) holds the vendor back; resumed, it gets the rest', async (_name, encoding) => {
  const total = 16 * 1024 * 1024;
  const body = encoding === undefined ? Buffer.alloc(total) : gzipSync(Buffer.alloc(total), { level: 0 });
  const { origin } = await httpServer((_request, response) => {
    response.writeHead(200, encoding === undefined ? {} : { 'content-encoding': encoding });
    response.end(body);
  });
  const sent = new Sent(open(), callTo(origin));
  await sent.head;
  sent.control.pause();
  expect(await untilStill(() => sent.bytes, 100)).toBeLessThan(1024 * 1024);
  sent.control.resume();
  expect(await sent.over).toBe('end');
  expect(sent.bytes).toBe(total);
});

test('closing cuts what is under way', async () => {
  const { origin } = await httpServer((_request, response) => void response.writeHead(200).write('x'));
  const upstream = createUpstream(outboundPolicy('allow-private', [], []));
  const sent = new Sent(upstream, callTo(origin));
  await sent.head;
  await upstream.close();
  expect(await sent.over).not.toBe('end');
});
