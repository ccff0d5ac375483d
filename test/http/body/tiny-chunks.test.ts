/** Bodies in chunks so small that taking them in costs many times what they bring. */
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { leastMeanChunkBytes, mostTinyChunks } from '../../../src/http/body/measured-message.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import type { Client, Edge } from '../edge.ts';
import { chunked, head, lastChunk, startEdge } from '../edge.ts';

const jsonOf = (bytes: number) => Buffer.from(`"${'z'.repeat(bytes - 2)}"`);
const inChunks = { 'transfer-encoding': 'chunked' };
const mebibyte = 1024 * 1024;
/** As `chunked` makes them, without a Buffer for each. */
const inPieces = (bytes: number, size: number) =>
  Buffer.from(`${size.toString(16)}\r\n${' '.repeat(size)}\r\n`.repeat(Math.floor(bytes / size)));

let edge: Edge & { readBytes(): number };

beforeEach(async () => {
  const sockets: Socket[] = [];
  const started = await startEdge((scope) => {
    scope.post('/echo', { bodyLimit: 2 * mebibyte }, async ({ body }) => ({
      length: JSON.stringify(body).length,
    }));
    scope.get('/none', async () => ({}));
    scope.get('/late', () => new Promise(() => undefined));
    scope.post('/small', async () => ({}));
  });
  started.app.server.on('connection', (socket) => void sockets.push(socket));
  edge = { ...started, readBytes: () => sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0) };
});

afterEach(() => edge.close());

const closed = async (client: Client): Promise<void> => {
  await client.closed;
  edge.letIn();
  await eventually(async () => edge.life.requestCount === 0 || undefined);
  expect(edge.life.bodies.heldBytes).toBe(0);
};

test.each([
  ['one byte each, up to the count', mostTinyChunks, 1],
  // Where a read ends, a chunk comes in two pieces.
  ['little above the mean, as many as it takes', mebibyte, leastMeanChunkBytes + 1],
])('is served: %s', async (_name, bytes, size) => {
  const client = edge.connect(
    head({ ...inChunks, connection: 'close' }),
    chunked(jsonOf(bytes), size),
    lastChunk,
  );
  await closed(client.read());
  expect(client.text).toContain(`{"length":${bytes}}`);
});

test('one more than the count is 400', async () => {
  const client = edge.connect(head(inChunks), inPieces(mostTinyChunks + 1, 1), lastChunk);
  await closed(client.read());
  expect(client.text).toMatch(/^HTTP\/1\.1 400 /);
  expect(client.text).toContain('"code":"tiny_chunks"');
  expect(client.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
});

test('what came before the cut is not taken for the whole, whatever comes behind it', async () => {
  const bodies: unknown[] = [];
  const taking = await startEdge((scope) => {
    scope.post('/echo', { bodyLimit: mebibyte }, async ({ body }) => {
      bodies.push(body);
      return {};
    });
  });
  const client = taking.connect(
    head(inChunks),
    chunked(jsonOf(64), 64),
    inPieces(mostTinyChunks + 1, 1),
    chunked(Buffer.from('}garbage'), 8),
    lastChunk,
  );
  await client.read().closed;
  taking.letIn();
  await eventually(async () => taking.life.requestCount === 0 || undefined);
  expect(client.text).toContain('"code":"tiny_chunks"');
  expect(bodies).toEqual([]);
  await taking.close();
});

test.each([
  ['below the mean for long', 'POST /echo', {}, leastMeanChunkBytes - 1],
  ['whose account is looked up', 'POST /echo', { 'x-wait': 1 }, 1],
  ['behind another request', 'GET /late HTTP/1.1\r\nhost: x\r\n\r\nPOST /echo', {}, 1],
  ['that nobody wants', 'GET /none', {}, 1],
  ['that was refused for its size', 'POST /small', {}, 1],
  ['of an unknown path', 'POST /nothing', {}, 1],
])('is read no further: a body %s', async (_name, target, more, size) => {
  const body = inPieces(4 * mebibyte, size);
  const client = edge.connect(head({ ...inChunks, ...more }, target), body, lastChunk);
  await closed(client.read());
  // What the kernels held between the two, and one read of the process.
  expect(edge.readBytes()).toBeLessThan(body.length / 2);
});

test('a declared body may come as slowly as it likes, byte by byte', async () => {
  const bytes = jsonOf(2 * mostTinyChunks);
  const client = edge.connect(head({ 'content-length': bytes.length, connection: 'close' })).read();
  for (let at = 0; at < bytes.length; at += 1) {
    client.socket.write(bytes.subarray(at, at + 1));
    if (at % 16 === 0) await new Promise(setImmediate);
  }
  await closed(client);
  expect(client.text).toContain(`{"length":${bytes.length}}`);
});
