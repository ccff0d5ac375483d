/** Answers that users' servers compress: unpacking one takes memory from its first byte on, whatever comes of it. */
import { createServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { createUndiciUpstream } from '../../../src/adapters/upstream/undici-upstream.ts';
import { createUpstreamClient } from '../../../src/adapters/upstream/upstream-client.ts';
import type { UpstreamControl } from '../../../src/chat/ports.ts';
import { outboundPolicy } from '../../../src/core/net/outbound-policy.ts';
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

test.each([
  ['our own client', createUpstreamClient],
  ["undici's", createUndiciUpstream],
] as const)('are unpacked for each user up to a bound, over %s', async (_name, create) => {
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
