/** Clients that do not read: what was written for them is let go, with them. */
import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answerStallMs } from '../../src/http/stalled-readers.ts';
import { eventually } from '../harness/measure/eventually.ts';
import type { Edge } from './edge.ts';
import { head, startEdge } from './edge.ts';

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
    scope.get('/late', async () => {
      await gate;
      return { text };
    });
  });
  expect(edge.app.server.timeout).toBe(answerStallMs);
  edge.app.server.timeout = stallMs;
});

afterEach(async () => {
  edge.app.server.closeAllConnections();
  await edge.app.close();
});

const isOver = () => eventually(async () => edge.ended.length > 0 || undefined);

test('one who never reads a whole answer is let go and counted', async () => {
  const client = edge.connect(head({}, 'GET /large'));
  client.socket.pause();
  await isOver();
  expect(edge.ended).toEqual([{ status: 200, whole: false }]);
  expect(edge.stalled).toHaveLength(1);
  expect(edge.life.requestCount).toBe(0);
});

test('one who sends a hundred requests and reads nothing gets one answer made', async () => {
  const client = edge.connect(head({}, 'GET /large').repeat(100));
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
