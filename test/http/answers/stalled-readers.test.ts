/** Clients that do not read: what was written for them is let go, with them. */
import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answerStallMs } from '../../../src/http/answers/stalled-readers.ts';
import { maxWaitingRequests } from '../../../src/http/connections/turns.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import type { Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

/** No kernel takes this much off a writer whose reader does not read. */
const moreThanSocketsHold = 32 * 1024 * 1024;
/** Instead of half a minute. */
const stallMs = 600;

let edge: Edge;
let go: () => void;

beforeEach(async () => {
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  const text = 'z'.repeat(moreThanSocketsHold);
  edge = await startEdge((scope) => {
    scope.get('/large', async () => ({ text }));
    scope.get('/text', async (_request, reply) => reply.type('text/plain').send(text));
    scope.get('/bytes', async () => Buffer.from(text));
    scope.get('/failed', async (_request, reply) => reply.code(500).send({ text }));
    scope.get('/wide', async () => ({ text: '語'.repeat(moreThanSocketsHold / 3) }));
    scope.get('/small', async () => ({ text: 'z'.repeat(60_000) }));
    scope.get('/late', async () => {
      await gate;
      return { text };
    });
  });
  expect(edge.app.server.timeout).toBe(answerStallMs);
  edge.app.server.timeout = stallMs;
});

afterEach(() => edge.close());

const isOver = () => eventually(async () => edge.ended.length > 0 || undefined);

test('one who never reads a whole answer is let go and counted', async () => {
  const client = edge.connect(head({}, 'GET /large'));
  client.socket.pause();
  await isOver();
  expect(edge.ended).toEqual([{ status: 200, whole: false }]);
  expect(edge.stalled).toHaveLength(1);
  expect(edge.life.requestCount).toBe(0);
});

test('one who sends all requests that may wait and reads nothing gets one answer made', async () => {
  const client = edge.connect(head({}, 'GET /large').repeat(maxWaitingRequests));
  client.socket.pause();
  await isOver();
  expect(edge.ended).toEqual([{ status: 200, whole: false }]);
  expect(edge.stalled).toHaveLength(1);
});

test('requests sent behind each other are answered in order', async () => {
  const client = edge.connect(head({}, 'GET /late') + head({}, 'GET /nothing').repeat(2)).read();
  const last = head({ connection: 'close' }, 'GET /nowhere');
  client.socket.write(last);
  await eventually(async () => edge.life.requestCount === 1 || undefined);
  go();
  await client.closed;
  expect([...client.text.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status)).toEqual([
    '200',
    '404',
    '404',
    '404',
  ]);
});

test('one who reads slowly has its answer', async () => {
  const client = edge.connect(head({ connection: 'close' }, 'GET /large'));
  let bytes = 0;
  // Takes a part, then nothing for half the limit, many times over.
  client.socket.on('data', (chunk) => {
    const before = Math.floor(bytes / (4 * 1024 * 1024));
    bytes += chunk.length;
    if (Math.floor(bytes / (4 * 1024 * 1024)) === before) return;
    client.socket.pause();
    setTimeout(() => client.socket.resume(), stallMs / 6);
  });
  await client.closed;
  expect(bytes).toBeGreaterThan(moreThanSocketsHold);
  expect(edge.stalled).toEqual([]);
});

test('one who waits for an answer longer than that is not let go, until it does not read it', async () => {
  const client = edge.connect(head({}, 'GET /late'));
  client.socket.pause();
  await once(edge.app.server, 'timeout');
  expect(edge.ended).toEqual([]);
  go();
  await isOver();
  expect(edge.stalled).toHaveLength(1);
});

test.each(['large', 'text', 'bytes', 'failed', 'wide'])(
  'of answers that nobody reads, whatever the route (/%s), the oldest makes room; others keep theirs',
  async (route) => {
    const isHeld = (bytes: number) =>
      eventually(async () => edge.life.unread.heldBytes >= bytes || undefined);
    const ask = (user: string) => {
      const client = edge.connect(head({ 'x-user': user }, `GET /${route}`));
      client.socket.pause();
      return client;
    };
    edge.app.server.timeout = answerStallMs;
    const clients = [ask('hoarder')];
    await isHeld(moreThanSocketsHold);
    expect(edge.stalled).toEqual([]);
    clients.push(ask('hoarder'));
    await isOver();
    expect(edge.ended.map(({ whole }) => whole)).toEqual([false]);
    expect(edge.stalled).toHaveLength(1);
    const other = edge.connect(head({ connection: 'close', 'x-user': 'other' }, 'GET /small')).read();
    await other.closed;
    expect(other.text.length).toBeGreaterThan(60_000);
    expect(edge.stalled).toHaveLength(1);
    expect(Math.round(edge.life.unread.heldBytes / moreThanSocketsHold)).toBe(1);
    for (const { socket } of clients) socket.destroy();
    await eventually(async () => edge.life.unread.heldBytes === 0 || undefined);
  },
);
