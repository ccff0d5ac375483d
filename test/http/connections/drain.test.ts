/** From SIGTERM to the last answer, as clients with open connections see it. */
import { setTimeout as think } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { usageReadMs } from '../../../src/chat/exchange-limits.ts';
import { drain } from '../../../src/wiring/drain.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import type { Client, Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

/** No kernel takes this much off a writer whose reader does not read. */
const moreThanSocketsHold = 32 * 1024 * 1024;
/** A client comes back well before a connection is taken for idle, and later than any sweep. */
const delayMs = 1_500;
const thoughtMs = 250;
const drainMs = 30_000;
/** A database that is slow takes this long for a row. */
const rowMs = 500;

let edge: Edge;
/** Ends what a drain still waits for. */
let hurry: AbortController;
let letAnswer: () => void;

beforeEach(async () => {
  hurry = new AbortController();
  const gate = new Promise<void>((resolve) => {
    letAnswer = resolve;
  });
  const text = 'z'.repeat(moreThanSocketsHold);
  edge = await startEdge((scope) => {
    scope.get('/ping', async () => ({}));
    scope.post('/taken', async () => ({}));
    scope.get('/large', async () => ({ text }));
    scope.get('/held', (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(200, { 'content-type': 'text/event-stream' });
      reply.raw.write('begun');
      void gate.then(() => reply.raw.end('ended'));
    });
  });
});

afterEach(async () => {
  hurry.abort();
  await edge.close();
});

const begin = (limits: { delayMs: number; drainMs: number }): Promise<number> =>
  drain(edge.app, edge.life, limits, hurry.signal);

const until = (client: Client, text: string): Promise<true> =>
  eventually(async () => client.text.includes(text) || undefined);

const untilNotAccepting = (): Promise<true> =>
  eventually(async () => !edge.app.server.listening || undefined);

test('whoever was not told to leave is answered once more, and told, however long the answer before took', async () => {
  const clients = Array.from({ length: 100 }, () => edge.connect(head({}, 'GET /held')).read());
  await Promise.all(clients.map((client) => until(client, 'begun')));
  const drained = begin({ delayMs, drainMs });
  await untilNotAccepting();
  letAnswer();
  const seen = await Promise.all(
    clients.map(async (client, index) => {
      await until(client, 'ended');
      client.text = '';
      // Half of them at once, as agents do; half after a while.
      if (index % 2 === 0) await think(thoughtMs);
      client.socket.write(head({}, 'GET /ping'));
      await client.closed;
      return /^HTTP\/1.1 200 OK.*connection: close.*\{\}$/is.test(client.text);
    }),
  );
  expect(seen.filter(Boolean)).toHaveLength(100);
  await drained;
});

test('an answer that is being read slowly when the listener closes is read to its end', async () => {
  const client = edge.connect(head({}, 'GET /large'));
  client.socket.pause();
  await eventually(async () => edge.life.requestCount === 1 || undefined);
  const drained = begin({ delayMs: 0, drainMs });
  await untilNotAccepting();
  let bytes = 0;
  client.socket.on('data', (chunk) => {
    bytes += chunk.length;
  });
  client.socket.resume();
  await client.closed;
  expect(bytes).toBeGreaterThan(moreThanSocketsHold);
  await drained;
});

test.each([
  ['nothing at all', ''],
  ['an answered request', head({}, 'GET /ping')],
  ['half a head', 'GET /ping HTTP/1.1\r\nhost'],
])(
  'a connection with %s is let go at the end of the delay, and nothing is waited for',
  async (_what, sent) => {
    const clients = Array.from({ length: 20 }, () => edge.connect(sent).read());
    if (sent.endsWith('\r\n\r\n')) await Promise.all(clients.map((client) => until(client, '200 OK')));
    await eventually(async () => {
      const count = await new Promise<number>((resolve) =>
        edge.app.server.getConnections((_error, found) => resolve(found)),
      );
      return count === clients.length || undefined;
    });
    await begin({ delayMs: 300, drainMs });
    await Promise.all(clients.map(({ closed }) => closed));
  },
);

test('new work is taken on kept connections until half of the time for answers is over', async () => {
  const client = edge.connect(head({}, 'GET /held')).read();
  await until(client, 'begun');
  const drained = begin({ delayMs: 0, drainMs: 1_000 });
  await untilNotAccepting();
  const openedAtMs = performance.now();
  expect(edge.life.phase).toBe('draining');
  await eventually(async () => edge.life.phase === 'closing' || undefined);
  expect(performance.now() - openedAtMs).toBeGreaterThan(400);
  letAnswer();
  await drained;
});

test('a usage that is read for as long as may be, and its row, are waited for when the client is gone', async () => {
  edge.life.unsettled = 1;
  setTimeout(() => {
    edge.life.unsettled = 0;
  }, usageReadMs + rowMs);
  await begin({ delayMs: 0, drainMs: 0 });
  expect(edge.life.unsettled).toBe(0);
});

test('a request whose body has not come whole at the end is told why it is refused', async () => {
  const client = edge.connect(head({ 'content-length': 10 }, 'POST /taken'), '{').read();
  await eventually(async () => edge.life.bodies.heldBytes > 0 || undefined);
  await begin({ delayMs: 0, drainMs: 0 });
  expect(client.text).toContain('HTTP/1.1 503');
  expect(client.text).toContain('"code":"draining"');
});

test('in a hurry, idle connections are let go at once, before those that still read', async () => {
  const reader = edge.connect(head({}, 'GET /large'));
  reader.socket.pause();
  const idle = edge.connect(head({}, 'GET /ping')).read();
  await until(idle, '200 OK');
  await eventually(async () => edge.life.requestCount === 1 || undefined);
  hurry.abort();
  const drained = begin({ delayMs: 60_000, drainMs: 60_000 });
  await idle.closed;
  const left = await new Promise<number>((resolve) =>
    edge.app.server.getConnections((_error, found) => resolve(found)),
  );
  expect(left).toBe(1);
  reader.socket.destroy();
  await drained;
});
