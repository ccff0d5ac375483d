import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply } from 'fastify';
import fastify from 'fastify';
import { afterEach, expect, test, vi } from 'vitest';
import { ReplyClient } from '../../../src/http/answers/reply-client.ts';
import { BodyBudget } from '../../../src/http/body/body-budget.ts';
import { Life } from '../../../src/http/life.ts';
import { unreadAnswers } from '../../harness/gateway/unread-answers.ts';

/** No kernel takes this much off a writer whose reader does not read. */
const moreThanSocketsHold = 64 * 1024 * 1024;

let app: FastifyInstance;

afterEach(() => app.close());

/** A server whose one route hands its client to the test, and a request to it. */
async function exchange(life = new Life(new BodyBudget(24 * 1024 * 1024), unreadAnswers())) {
  let hand: (handed: { client: ReplyClient; reply: FastifyReply }) => void;
  const handed = new Promise<{ client: ReplyClient; reply: FastifyReply }>((resolve) => {
    hand = resolve;
  });
  app = fastify({ forceCloseConnections: true });
  app.get('/', (_request, reply) => {
    reply.header('x-request-id', 'r-1');
    hand({ client: new ReplyClient(reply, life, 'u-1'), reply });
    return reply;
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const sent = request({ port, host: '127.0.0.1' }).on('error', () => undefined);
  sent.end();
  const answer = once(sent, 'response').then(([response]) => response as IncomingMessage);
  // A test whose client leaves has no use for it.
  answer.catch(() => undefined);
  return { ...(await handed), sent, answer, life };
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of response) text += String(part);
  return text;
}

/** Its head is put together ahead. */
async function prepared(client: ReplyClient): Promise<ReplyClient> {
  client.prepare();
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
  return client;
}

test.each<[name: string, begin: (client: ReplyClient) => unknown]>([
  ['a stream', (client) => client.open()],
  ['a stream that was prepared', async (client) => (await prepared(client)).open()],
  ['a whole answer', (client) => client.answer({ json: '{}', bytes: 2 })],
])('%s whose head cannot be written is an error that the client is told', async (_name, begin) => {
  app = fastify({ forceCloseConnections: true });
  const life = new Life(new BodyBudget(24 * 1024 * 1024), unreadAnswers());
  app.get('/', async (_request, reply) => {
    reply.header('x-request-id', 'two\nlines');
    await begin(new ReplyClient(reply, life, 'u-1'));
  });
  app.setErrorHandler((_error, _request, reply) => reply.removeHeader('x-request-id').code(500).send('told'));
  const answer = await fetch(await app.listen({ host: '127.0.0.1', port: 0 }));
  expect([answer.status, await answer.text()]).toEqual([500, 'told']);
});

test.each([
  ['an opened stream', async (client: ReplyClient) => client],
  ['one that was prepared', prepared],
])('%s has the headers of a stream and those set before', async (_name, ready) => {
  const { client, answer, life } = await exchange();
  await ready(client);
  expect(life.activeCount).toBe(1);
  client.open();
  client.write('data: 1\n\n');
  const response = await answer;
  expect(response.statusCode).toBe(200);
  expect(response.headers).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store, no-cache',
    'x-accel-buffering': 'no',
    'x-request-id': 'r-1',
    connection: 'keep-alive',
  });
  client.end('data: [DONE]\n\n');
  expect(await textOf(response)).toBe('data: 1\n\ndata: [DONE]\n\n');
  expect(client.signal.aborted).toBe(false);
  expect(life.activeCount).toBe(0);
});

test('what is set behind a prepared head is not in it', async () => {
  const { client, answer, reply } = await exchange();
  await prepared(client);
  reply.header('x-late', '1');
  client.open();
  client.end('');
  const { headers } = await answer;
  expect(headers).toMatchObject({ 'x-request-id': 'r-1' });
  expect(headers).not.toHaveProperty('x-late');
});

test.each<[name: string, write: (client: ReplyClient) => void]>([
  ['a whole answer, head included,', (client) => client.answer({ json: '{"a":"b"}', bytes: 9 })],
  [
    'a burst of events of one read, head and end included,',
    (client) => {
      client.open();
      client.write(Buffer.from('data: 1\n\n'.repeat(100)));
      client.end('data: [DONE]\n\n');
    },
  ],
  [
    'a burst of large events, head and end included,',
    (client) => {
      client.open();
      client.write(Buffer.from(`data: ${'x'.repeat(10_000)}\n\n`.repeat(2)));
      client.end('data: [DONE]\n\n');
    },
  ],
])('%s is one write to the socket', async (_name, write) => {
  const { client, answer, reply } = await exchange();
  const socket = reply.raw.socket as unknown as Required<Pick<Duplex, '_write' | '_writev'>>;
  const [one, many] = [vi.spyOn(socket, '_write'), vi.spyOn(socket, '_writev')];
  write(client);
  await textOf(await answer);
  expect(one.mock.calls.length + many.mock.calls.length).toBe(1);
});

test('a stream opened while the process closes asks for the connection to be closed', async () => {
  const life = new Life(new BodyBudget(24 * 1024 * 1024), unreadAnswers());
  const { client, answer } = await exchange(life);
  await prepared(client);
  life.to('draining');
  client.open();
  client.end('');
  expect((await answer).headers.connection).toBe('close');
});

test('a client that leaves is noticed, and writing to it neither fails nor waits', async () => {
  const { client, sent, life } = await exchange();
  const left = new Promise<void>((resolve) => client.signal.addEventListener('abort', resolve));
  sent.destroy();
  await left;
  expect(client.signal.reason).toBe('client-gone');
  client.open();
  expect(client.write('x')).toBe(true);
  client.end('y');
  client.destroy();
  expect(life.activeCount).toBe(0);
});

test('a destroyed stream does not look whole', async () => {
  const { client, answer } = await exchange();
  client.open();
  client.write('data: 1\n\n');
  const response = await answer;
  client.destroy();
  await expect(textOf(response)).rejects.toThrow(/aborted/);
});

test('a client that reads slowly says stop, and calls back once it has caught up', async () => {
  const { client, answer, life } = await exchange();
  client.open();
  expect(life.bufferedBytes).toBe(0);
  client.write(Buffer.alloc(moreThanSocketsHold));
  expect(life.bufferedBytes).toBeGreaterThan(0);
  // What waits for it is no less memory than a whole answer.
  expect(life.unread.heldBytes).toBe(life.bufferedBytes);
  let drained = 0;
  const caughtUp = new Promise<void>((resolve) => {
    client.onDrain(() => {
      drained += 1;
      resolve();
    }, null);
  });
  const response = await answer;
  const text = textOf(response);
  await caughtUp;
  client.end('');
  await text;
  expect(drained).toBe(1);
  expect([life.bufferedBytes, life.unread.heldBytes]).toEqual([0, 0]);
});

test('a slow client that leaves calls back too, so that those who wait with it go on', async () => {
  const { client, sent, answer, life } = await exchange();
  client.open();
  client.write(Buffer.alloc(moreThanSocketsHold));
  const caughtUp = new Promise<void>((resolve) => {
    client.onDrain(resolve, null);
  });
  await answer;
  sent.destroy();
  await caughtUp;
  expect(client.signal.aborted).toBe(true);
  expect(life.unread.heldBytes).toBe(0);
});

test('what is meant for a client that has left does not count', async () => {
  const { client, sent, life } = await exchange();
  const left = new Promise<void>((resolve) => client.signal.addEventListener('abort', resolve));
  sent.destroy();
  await left;
  client.open();
  client.keeps(1_000_000);
  expect(life.unread.heldBytes).toBe(0);
});

test('a replay, which counts as a whole, does not count again by its events', async () => {
  const { client, sent, life } = await exchange();
  client.open();
  client.keeps(1_000_000);
  client.write(Buffer.alloc(moreThanSocketsHold));
  expect(life.unread.heldBytes).toBe(1_000_000);
  sent.destroy();
});

test('the end of the grace period reaches every client', async () => {
  const { client, life } = await exchange();
  life.cutAll();
  expect(client.signal.reason).toBe('drain');
  client.open();
  client.end('');
});
