/** What the kernel takes of answers that nobody reads is bounded, however they are asked for and however it ends. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ReplyClient } from '../../../src/http/answers/reply-client.ts';
import { maxWaitingRequests } from '../../../src/http/connections/turns.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { sentBytes } from '../../harness/measure/sent-bytes.ts';
import type { Client, Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

const mebibyte = 1024 * 1024;
const pageBytes = 2 * mebibyte;
/** The edge gives it 48, and what is written while the kernel is asked comes on top. */
const mostSentBytes = 64 * mebibyte;
/** Together they ask for more than that. */
const readers = 40;

let edge: Edge;
let port: number;

beforeEach(async () => {
  const page = 'z'.repeat(pageBytes);
  const small = 'z'.repeat(60_000);
  edge = await startEdge((scope) => {
    scope.get('/page', async () => ({ page }));
    scope.get('/small', async () => ({ small }));
    scope.get('/chat', (_request, reply) =>
      new ReplyClient(reply, edge.life, 'hoarder').answer({ json: page, bytes: pageBytes }),
    );
    scope.get('/stream', (_request, reply) => {
      const client = new ReplyClient(reply, edge.life, 'hoarder');
      client.open();
      for (let at = 0; at < pageBytes; at += small.length) client.write(small);
    });
  });
  ({ port } = edge.app.server.address() as AddressInfo);
});

afterEach(() => edge.close());

const hoarder = { 'x-user': 'hoarder' };
const closing = { ...hoarder, connection: 'close' };

/** Takes the beginning of an answer and no more. */
async function begin(client: Client): Promise<Client> {
  await Promise.race([once(client.socket, 'data'), client.closed]);
  client.socket.pause();
  return client;
}

const ask = (text: string) => begin(edge.connect(text));

/** Once the whole answer is in the kernel. */
async function askAndSend(bytes: string): Promise<void> {
  const before = edge.ended.length;
  const { socket } = await ask(head(hoarder, 'GET /page'));
  await eventually(async () => edge.ended.length > before || socket.destroyed || undefined);
  socket.end(bytes);
}

const ways: Readonly<Record<string, () => Promise<unknown>>> = {
  'on kept connections': () => ask(head(hoarder, 'GET /page')),
  'with "Connection: close"': () => ask(head(closing, 'GET /page')),
  'by HTTP/1.0': () => ask(head(hoarder, 'GET /page').replace('HTTP/1.1', 'HTTP/1.0')),
  'as small ones behind each other': () => ask(head(hoarder, 'GET /small').repeat(60)),
  'with another request at once': () => ask(head(hoarder, 'GET /page').repeat(2)),
  'as chat answers': () => ask(head(hoarder, 'GET /chat')),
  'as streams': () => ask(head(hoarder, 'GET /stream')),
  'and the client ends its side': () => askAndSend(''),
  'and the client sends no HTTP': () => askAndSend('nonsense\r\n\r\n'),
  'and the client sends more than may wait': () =>
    askAndSend(head(hoarder, 'GET /page').repeat(maxWaitingRequests + 2)),
};

test.each(Object.entries(ways))('answers of 2 MiB that nobody reads, asked for %s', async (_way, one) => {
  let most = 0;
  for (let index = 0; index < readers; index += 1) {
    await one();
    most = Math.max(most, sentBytes(port));
  }
  const other = edge.connect(head({ connection: 'close', 'x-user': 'other' }, 'GET /page')).read();
  await other.closed;
  expect(other.text.length).toBeGreaterThan(pageBytes);
  expect(most).toBeLessThan(mostSentBytes);
});

test('clients that read what they ask for keep their connections, however many they are', async () => {
  const clients = Array.from({ length: readers }, () => edge.connect());
  for (let round = 1; round <= 2; round += 1) {
    for (const { socket } of clients) {
      socket.resume().write(head({ 'x-user': 'reader' }, 'GET /page'));
      await eventually(async () => socket.bytesRead > round * pageBytes || undefined);
    }
  }
  expect(edge.stalled).toEqual([]);
  expect(clients.filter(({ socket }) => socket.destroyed)).toEqual([]);
});

test.each(['HTTP/1.0', 'HTTP/1.1'])(
  'one who reads to the end of its connection has it, and its connection is gone (%s)',
  async (version) => {
    const client = await ask(head(closing, 'GET /page').replace('HTTP/1.1', version));
    await eventually(async () => edge.ended.length === 1 || undefined);
    const { closed } = client.read();
    client.socket.resume();
    await closed;
    expect(client.text.length).toBeGreaterThan(pageBytes - 64 * 1024);
    await eventually(async () => edge.life.connections.count === 0 || undefined);
    expect(edge.stalled).toEqual([]);
  },
);

test('requests behind the last answer of a connection are not worked on', async () => {
  const client = await ask(head(closing, 'GET /page'));
  await eventually(async () => edge.ended.length === 1 || undefined);
  client.socket.write(head(hoarder, 'GET /page'));
  client.read().socket.resume();
  await client.closed;
  await eventually(async () => edge.life.connections.count === 0 || undefined);
  expect(edge.ended).toHaveLength(1);
});
