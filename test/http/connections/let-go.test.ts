/** Connections that are answered past Node's responses: whoever is on them holds no place for long. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../harness/measure/eventually.ts';
import type { Client, Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

const tunnel = 'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n';
const ping = head({}, 'GET /ping');

/** Many times what they are given: a wait that does not end says so before its test does. */
const soonMs = 10_000;

let edge: Edge;
/** Ends the stream. */
let end: () => void;

beforeEach(async () => {
  edge = await startEdge((scope) => {
    scope.get('/ping', async () => ({}));
    scope.post('/echo', async ({ body }) => ({ body }));
    scope.get('/stream', (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\n\n');
      end = () => reply.raw.end('data: two\n\n');
    });
  });
  // Requests that do not come to their end are late at the next look at all of them.
  edge.app.server.headersTimeout = 100;
  edge.app.server.requestTimeout = 100;
});

afterEach(() => edge.close());

const until = (client: Client, text: string): Promise<true> =>
  eventually(async () => client.text.includes(text) || undefined);

const untilNoneIsOpen = (): Promise<true> =>
  eventually(async () => edge.life.connections.count === 0 || undefined, soonMs);

/** Sends its parts, each behind an answer, and reads up to the gateway's end, but keeps its own side open. */
async function stay(...parts: readonly string[]): Promise<Client> {
  const [first = '', ...others] = parts;
  const client = edge.connect(first).read();
  client.socket.allowHalfOpen = true;
  const ended = once(client.socket, 'end');
  for (const part of others) {
    await until(client, '200 OK');
    client.socket.write(part);
  }
  await ended;
  return client;
}

const refusals = [
  ['a tunnel', 405, [tunnel]],
  ['a tunnel behind a request', 405, [ping, tunnel]],
  ['what is no HTTP', 400, ['GARBAGE\r\n\r\n']],
  ['what is no HTTP, behind a request', 400, [ping, 'GARBAGE\r\n\r\n']],
  ['half a head', 408, ['GET /ping HTTP/1.1\r\nhost: x\r\nx-a']],
  ['half a head behind a request', 408, [ping, 'GET /ping HTTP/1.1\r\nhost: x\r\nx-a']],
  ['half a body', 408, [`${head({ 'content-length': 1_000 })}{`]],
] as const;

test('clients that stay behind the answer to what was no request, or not whole, are let go', async () => {
  const held = new Map<number | undefined, Socket>();
  edge.app.server.on('connection', (socket: Socket) => held.set(socket.remotePort, socket));
  const ends = refusals.map(async ([what, status, parts]) => {
    const { text, socket } = await stay(...parts);
    expect(text, what).toContain(`HTTP/1.1 ${status} `);
    const place = held.get(socket.localPort) as Socket;
    await eventually(async () => place.destroyed || undefined, soonMs).catch(() =>
      expect.fail(`held by ${what}`),
    );
  });
  await Promise.all(ends);
  await untilNoneIsOpen();
});

test('a client that has said nothing is let go without a word', async () => {
  const client = edge.connect().read();
  await client.closed;
  expect(client.text).toBe('');
});

test('a client that leaves, having sent more behind its tunnel, is gone before one that came first and stays', async () => {
  const gone: string[] = [];
  const names = ['stays', 'leaves'];
  edge.app.server.on('connection', (socket: Socket) => {
    const name = names.shift() ?? '';
    socket.once('close', () => gone.push(name));
  });
  await stay(tunnel);
  const leaver = await stay(tunnel);
  leaver.socket.end('x');
  await untilNoneIsOpen();
  expect(gone).toEqual(['leaves', 'stays']);
});

test('a tunnel that is asked for behind a request does not get into its answer, and nothing is left of either', async () => {
  const client = edge.connect(head({}, 'GET /stream')).read();
  await until(client, 'data: one');
  client.socket.write(`${ping}${tunnel}`);
  await client.closed;
  end();
  expect(client.text).not.toContain('405');
  await eventually(async () => edge.life.requestCount === 0 || undefined);
  await untilNoneIsOpen();
  expect(edge.ended).toEqual([{ status: 200, whole: false }]);
});
