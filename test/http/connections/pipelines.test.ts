/** Requests behind a request that hangs, on one connection: a few wait for their turn, more are not kept. */

import { randomBytes } from 'node:crypto';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hashServiceKey, newServiceKey } from '../../../src/core/account/service-key.ts';
import { maxWaitingPerTurn, maxWaitingRequests, Turns } from '../../../src/http/connections/turns.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { livingBytes } from '../../harness/measure/memory.ts';
import { callerOf } from '../caller.ts';
import type { Client, Edge } from '../edge.ts';
import { head, startEdge } from '../edge.ts';

const mebibyte = 1024 * 1024;
const known = newServiceKey(randomBytes(32));
const knownHash = hashServiceKey(known);
const authorization = `Bearer ${known}`;
/** Its look-up hangs. */
const pending = { authorization: `Bearer ${newServiceKey(randomBytes(32))}` };

let edge: Edge;
/** How many requests hang. */
let hanging = 0;
/** Lets those that hang go on. */
let go: () => void;

beforeEach(async () => {
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  hanging = 0;
  const hang = async () => {
    hanging += 1;
    await gate;
  };
  const account = callerOf('u');
  edge = await startEdge(
    (scope) => {
      scope.post('/echo', async ({ body }) => ({ body }));
      scope.get('/hold', () => hang().then(() => ({})));
      scope.get('/stream', (_request, reply) => {
        reply.hijack();
        reply.raw.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n');
        void hang().then(() => reply.raw.end());
      });
    },
    {},
    {
      find: (hash) => (hash === knownHash ? account : hang().then(() => account)),
      remembers: () => false,
      isRevoked: () => false,
      refresh: async () => null,
    },
  );
});

afterEach(() => edge.close());

/** What hangs in front. */
const fronts: readonly (readonly [string, string])[] = [
  ['a look-up', `${head({ ...pending, 'content-length': 2 })}{}`],
  ['an answer', head({ authorization }, 'GET /hold')],
  ['a stream', head({ authorization }, 'GET /stream')],
];

/** What is sent behind it: each costs its sender little. */
const kinds: readonly (readonly [string, string])[] = [
  ['unknown paths', 'GET / HTTP/1.1\r\nhost:a\r\n\r\n'],
  ['paths that cannot be read', 'GET /%zz HTTP/1.1\r\nhost:a\r\n\r\n'],
  ['strangers', head({}, 'GET /hold')],
  ['bodies', `${head({ authorization, 'content-length': 7 })}{"a":1}`],
  ['small chunks', `${head({ authorization, 'transfer-encoding': 'chunked' })}1\r\n{\r\n1\r\n}\r\n0\r\n\r\n`],
];

const cases = fronts.flatMap(([front, first]) => kinds.map(([kind, next]) => ({ front, first, kind, next })));

const answers = ({ text }: Client) => text.match(/HTTP\/1\.1 \d{3}/g)?.length ?? 0;

/** Everything that was said about requests is over. */
const idle = () => eventually(async () => edge.life.requestCount === 0 || undefined, 20_000);

describe.each(cases)('$kind behind $front', ({ first, next }) => {
  test.each([1, maxWaitingRequests])('%i wait and are answered in turn', async (count) => {
    const client = edge.connect(first, next.repeat(count)).read();
    await eventually(async () => hanging > 0 || undefined);
    go();
    await eventually(async () => answers(client) === count + 1 || undefined);
    // And the next that many have room as well.
    client.socket.write(next.repeat(count));
    await eventually(async () => answers(client) === 2 * count + 1 || undefined);
    await idle();
  });

  test.each([maxWaitingRequests + 1, 2_500, 20_000])('%i are cut off', async (count) => {
    const before = livingBytes();
    let parsed = 0;
    edge.app.server.on('request', () => {
      parsed += 1;
    });
    const client = edge.connect(first, next.repeat(count)).read();
    await client.closed;
    // The one in front, those that may wait, and the one too many: what else came in the same read was not looked at.
    expect(parsed).toBeLessThanOrEqual(maxWaitingRequests + 2);
    // The one in front is over as well, for its client has left.
    await idle();
    expect(hanging).toBeLessThan(2);
    expect(livingBytes() - before).toBeLessThan(4 * mebibyte);
    const bystander = edge.connect(`${head({ authorization, 'content-length': 1 })}1`).read();
    await eventually(async () => bystander.text.includes('{"body":1}') || undefined);
  });
});

test('many connections, each with as many as may wait, share one room', () => {
  const turns = new Turns(40 * mebibyte);
  const line = () => {
    const socket = new Socket();
    const request = Object.assign(new IncomingMessage(socket), { url: '/' });
    request.headers = { 'content-length': '9999999' };
    return { socket, wait: () => turns.wait(request, new ServerResponse(request), () => undefined) };
  };
  const fill = ({ wait }: ReturnType<typeof line>) =>
    Array.from({ length: maxWaitingRequests }, wait).every(Boolean);
  const lines = Array.from({ length: 160 }, line);
  const [first] = lines as [ReturnType<typeof line>];
  expect(fill(first)).toBe(true);
  const mostLines = Math.floor((40 * mebibyte) / turns.waitingBytes);
  const waiting = lines.slice(1).filter(fill);
  expect(turns.waitingBytes).toBeLessThanOrEqual(40 * mebibyte);
  expect(waiting).toHaveLength(mostLines - 1);
  expect(lines.filter(({ socket }) => socket.destroyed)).toHaveLength(lines.length - mostLines);
});

test('all connections together may have so many in one turn, and as many in the next', async () => {
  const turns = new Turns(400 * mebibyte);
  const line = () => {
    const request = new IncomingMessage(new Socket());
    return () => turns.wait(request, new ServerResponse(request), () => undefined);
  };
  const begin = (count: number) => Array.from({ length: count }, line).filter((wait) => wait()).length;
  expect([begin(maxWaitingPerTurn), begin(50)]).toEqual([maxWaitingPerTurn, 0]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(begin(50)).toBe(50);
});

test.each(['their clients leave', 'they are answered'])('the room is free again when %s', async (how) => {
  const turns = new Turns(mebibyte);
  const sockets = Array.from({ length: 30 }, () => new Socket());
  for (const socket of sockets) {
    const request = new IncomingMessage(socket);
    const response = new ServerResponse(request);
    expect(turns.wait(request, response, () => undefined)).toBe(true);
    if (how === 'they are answered') response.assignSocket(socket);
  }
  for (const socket of sockets) socket.destroy();
  await eventually(async () => turns.waitingBytes === 0 || undefined);
  expect(turns.waitingBytes).toBe(0);
});
