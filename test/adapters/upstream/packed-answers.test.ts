/** Answers that users' servers compress: unpacking one takes memory from its first byte on, whatever comes of it. */
import { createServer } from 'node:net';
import { deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createUndiciUpstream } from '../../../src/adapters/upstream/undici-upstream.ts';
import { createUpstreamClient } from '../../../src/adapters/upstream/upstream-client.ts';
import type { UpstreamHttp } from '../../../src/adapters/upstream/upstream-http-port.ts';
import type { UpstreamControl } from '../../../src/chat/ports.ts';
import { outboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import type { LocalServer } from './local-server.ts';
import { callTo, listen, ofUser } from './local-server.ts';

/** Places for 32 answers of all users, and 8 of one. */
const limits = { sockets: 256, perUser: 64 };
const mostOfOne = 8;
const asked = 20;

const packed = gzipSync('{}');

/** Sends all but the last byte. */
async function packingServer(): Promise<string> {
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${packed.length}\r\n\r\n`);
      socket.write(packed.subarray(0, -1));
    });
  });
  return (await listen(server)).origin;
}

const clients = [
  ['our own client', createUpstreamClient],
  ["undici's", createUndiciUpstream],
] as const;

test.each(clients)('are unpacked for each user up to a bound, over %s', async (_name, create) => {
  const origin = await packingServer();
  const upstream = create(outboundPolicy('allow-private', [], []), limits);
  onTestFinished(() => upstream.close());
  const controls: UpstreamControl[] = [];
  const begin = (userId: string, overrides = {}) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    controls.push(
      upstream.send(callTo(origin, { ...ofUser(userId), ...overrides }), {
        onHead: () => resolve('unpacked'),
        onData: () => undefined,
        onEnd: () => undefined,
        onFailure: ({ kind }) => resolve(kind),
      }),
    );
    return promise;
  };

  const outcomes = await Promise.all(Array.from({ length: asked }, () => begin('greedy')));
  expect(outcomes.filter((outcome) => outcome === 'unpacked')).toHaveLength(mostOfOne);
  expect(outcomes.filter((outcome) => outcome === 'no-room')).toHaveLength(asked - mostOfOne);
  expect(await begin('other')).toBe('unpacked');
  expect(await begin('greedy', { provider: 'openai', userAddress: false })).toBe('unpacked');

  for (const control of controls) control.abort();
  await expect.poll(() => begin('greedy')).toBe('unpacked');
});

/** Answers each request with these bytes of a body that is said to be so many bytes longer. */
async function answeringServer(coding: string, body: Buffer, missingBytes: number): Promise<LocalServer> {
  const length = body.length + missingBytes;
  const head = `HTTP/1.1 200 OK\r\ncontent-encoding: ${coding}\r\ncontent-length: ${length}\r\n\r\n`;
  const answer = Buffer.concat([Buffer.from(head), body]);
  return listen(createServer((socket) => socket.on('data', () => socket.write(answer))));
}

/** What was unpacked, or how the call failed. */
function ask(upstream: UpstreamHttp, origin: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    upstream.send(callTo(origin, ofUser('u')), {
      onHead: () => undefined,
      onData: (chunk) => {
        text += chunk.toString();
      },
      onEnd: () => resolve(text),
      onFailure: ({ kind }) => resolve(kind),
    });
  });
}

/** Well before the pool of an origin that nobody asks any more is closed, with all of its connections. */
const soonMs = 5_000;

/** Zeros behind gzip are padding, and end it as well. */
const followed = [
  ['gzip', Buffer.concat([packed, Buffer.alloc(1)])],
  ['deflate', Buffer.concat([deflateSync('{}'), Buffer.from('x')])],
] as const;

describe.each(clients)('over %s', (_name, create) => {
  /** Of an answer whose body lacks so many bytes, three calls in a row. */
  async function askedThrice(coding: string, body: Buffer, missing: number) {
    const server = await answeringServer(coding, body, missing);
    const upstream = create(outboundPolicy('allow-private', [], []), limits);
    onTestFinished(() => upstream.close());
    for (let call = 0; call < 3; call += 1) expect(await ask(upstream, server.origin)).toBe('{}');
    return { server, upstream };
  }

  test.each(followed)(
    'whose body goes on behind %s and never ends, hold no connection',
    async (coding, body) => {
      const { server, upstream } = await askedThrice(coding, body, 1_000);
      expect(server.accepted).toHaveLength(3);
      await eventually(async () => server.open.size === 0 || undefined, soonMs);
      expect(upstream.connections().get('self_hosted')?.active ?? 0).toBe(0);
    },
  );

  test.each([['gzip', packed] as const, ...followed])(
    'whose body ends in order keep it: %s',
    async (coding, body) => {
      const { server } = await askedThrice(coding, body, 0);
      expect(server.accepted).toHaveLength(1);
      expect(server.open.size).toBe(1);
    },
  );
});
