/** Bodies that come while their request has to wait: for its account, or for its turn on the connection. */

import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Caller } from '../../../src/chat/ports.ts';
import { newServiceKey } from '../../../src/core/account/service-key.ts';
import { leastMeanChunkBytes, mostTinyChunks } from '../../../src/http/body/measured-message.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { livingBytes } from '../../harness/measure/memory.ts';
import { callerOf } from '../caller.ts';
import type { Client, Edge } from '../edge.ts';
import { chunked, head, lastChunk, startEdge } from '../edge.ts';

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;
const authorization = `Bearer ${newServiceKey(randomBytes(32))}`;
const account = callerOf('u');

let edge: Edge;
let lookUps = 0;
/** Whether the keys were good lately. */
let remembered = false;
/** Ends the look-ups that are waited for. */
let found: (account: Caller | null) => void;
/** Lets the handler of `/hold` go on. */
let go: () => void;

beforeEach(async () => {
  const lookUp = new Promise<Caller | null>((resolve) => {
    found = resolve;
  });
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  lookUps = 0;
  remembered = false;
  const accounts = {
    find: () => {
      lookUps += 1;
      return lookUp;
    },
    remembers: () => remembered,
    isRevoked: () => false,
    refresh: async () => null,
  };
  edge = await startEdge(
    (scope) => {
      scope.post('/echo', { bodyLimit: 20 * mebibyte }, async ({ body }) => ({
        length: JSON.stringify(body).length,
      }));
      scope.get('/hold', async () => {
        await gate;
        return {};
      });
    },
    {},
    accounts,
  );
});

afterEach(() => edge.close());

const jsonOf = (bytes: number) => Buffer.from(`"${'z'.repeat(bytes - 2)}"`);
/** As many of the smallest chunks as are let in. */
const drippedBytes = mostTinyChunks;
const dripping = chunked(jsonOf(drippedBytes), 1);
const inChunks = { authorization, 'transfer-encoding': 'chunked' };

/** The bytes that reached the process, as its kernel counts them. */
const drained = (clients: readonly Client[]) =>
  eventually(async () => clients.every(({ socket }) => socket.writableLength === 0) || undefined, 30_000);

const answered = (clients: readonly Client[], what: string) =>
  eventually(async () => clients.every(({ text }) => text.includes(what)) || undefined, 30_000);

/** Sends to each what is given, and tells what that costs the process once it is all there. */
async function costOf(count: number, ...parts: (string | Buffer)[]): Promise<[Client[], number]> {
  const before = livingBytes();
  const clients = Array.from({ length: count }, () => edge.connect(...parts).read());
  await drained(clients);
  // What the kernel still had is read when this has gone round.
  for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
  return [clients, livingBytes() - before];
}

describe('fifty bodies in one-byte chunks cost their bytes and no more', () => {
  test.each<[string, Caller | null, string]>([
    ['known', account, `{"length":${drippedBytes}}`],
    ['unknown', null, '401 Unauthorized'],
  ])(
    'while a key is looked up that turns out to be %s',
    async (_name, result, answer) => {
      const [clients, cost] = await costOf(50, head(inChunks), dripping, lastChunk);
      expect(lookUps).toBe(50);
      // At 545 bytes for each it would be 110 MB.
      expect(cost).toBeLessThan(16 * mebibyte);
      found(result);
      await answered(clients, answer);
      expect(edge.life.bodies.heldBytes).toBe(0);
    },
    120_000,
  );

  test('with Expect, whoever was not told to continue', async () => {
    const [clients, cost] = await costOf(
      50,
      head({ ...inChunks, expect: '100-continue' }),
      dripping,
      lastChunk,
    );
    expect(cost).toBeLessThan(16 * mebibyte);
    expect(clients.map(({ text }) => text).join('')).toBe('');
    found(null);
    await answered(clients, '401 Unauthorized');
    expect(clients.map(({ text }) => text).join('')).not.toContain('100 Continue');
  }, 120_000);

  test('behind another request, until it is their turn', async () => {
    found(account);
    const first = head({ authorization }, 'GET /hold');
    const [clients, cost] = await costOf(50, first, head(inChunks), dripping, lastChunk);
    expect(cost).toBeLessThan(16 * mebibyte);
    go();
    await answered(clients, `{"length":${drippedBytes}}`);
  }, 120_000);

  test('where no body is wanted', async () => {
    found(account);
    const [clients, cost] = await costOf(50, head(inChunks, 'GET /hold'), dripping, lastChunk);
    expect(cost).toBeLessThan(16 * mebibyte);
    go();
    await answered(clients, '200 OK');
  }, 120_000);
});

describe('a body of which more comes than is taken early', () => {
  const large = jsonOf(8 * mebibyte);

  test.each([
    ['declared', { authorization, 'content-length': large.length }, [large]],
    ['in chunks', inChunks, [chunked(large, 16 * kibibyte), lastChunk]],
    [
      'in small chunks',
      inChunks,
      [
        chunked(large.subarray(0, mebibyte - 1), leastMeanChunkBytes + 1),
        chunked(Buffer.from('"')),
        lastChunk,
      ],
    ],
  ])('waits in the sender and is read afterwards: %s', async (_name, fields, parts) => {
    const before = livingBytes();
    const client = edge.connect(head(fields), ...parts).read();
    await eventually(async () => lookUps === 1 || undefined);
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
    const sender = client.socket.writableLength;
    expect(livingBytes() - before).toBeLessThan(4 * mebibyte + sender);
    found(account);
    await eventually(async () => client.text.includes('{"length":') || undefined, 30_000);
    // The connection is as good as before.
    client.socket.write(`${head({ authorization, 'content-length': 5, connection: 'close' })}"123"`);
    await client.closed;
    expect(client.text).toContain('{"length":5}');
  });

  test('of an unknown key is thrown away, and its sender sees why', async () => {
    const client = edge.connect(head({ authorization, 'content-length': large.length }), large).read();
    await eventually(async () => lookUps === 1 || undefined);
    found(null);
    await eventually(async () => client.text.includes('401 Unauthorized') || undefined, 20_000);
    client.socket.write(head({ connection: 'close' }));
    await client.closed;
    expect(client.text.match(/401 Unauthorized/g)).toHaveLength(2);
  });

  test('larger than it may be is refused as ever', async () => {
    const body = chunked(Buffer.alloc(21 * mebibyte, 'z'), 65_536);
    const client = edge.connect(head(inChunks), body, lastChunk).read();
    await eventually(async () => lookUps === 1 || undefined);
    found(account);
    await eventually(async () => client.text.includes('HTTP/1.1 413') || undefined, 30_000);
  });
});

test('a client that leaves with its whole body sent is not served', async () => {
  const client = edge.connect(head({ authorization, 'content-length': 5 }), '"123"');
  await eventually(async () => lookUps === 1 || undefined);
  client.socket.destroy();
  await eventually(async () => edge.ended.length === 1 || undefined);
  found(account);
  await eventually(async () => edge.life.requestCount === 0 || undefined);
  expect(edge.life.bodies.heldBytes).toBe(0);
  expect(edge.ended).toEqual([expect.objectContaining({ whole: false })]);
});

describe('bodies of keys that are being looked up have a room together', () => {
  /** A half of a quarter of the budget of tests: the most that one network, or one key, may fill. */
  const most = (24 * mebibyte) / 4 / 2;
  const body = jsonOf(60 * kibibyte);
  const request = (key = authorization) =>
    Buffer.concat([
      Buffer.from(head({ authorization: key, 'content-length': body.length, connection: 'close' })),
      body,
    ]);
  const other = `Bearer ${newServiceKey(randomBytes(32))}`;

  /** Sends until some are lost; the kernel may deliver in any order. */
  async function fill(): Promise<Client[]> {
    const count = Math.ceil((2 * most) / body.length);
    const clients = Array.from({ length: count }, () => edge.connect(request()).read());
    await eventually(async () => lookUps === count || undefined, 30_000);
    await drained(clients);
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
    return clients;
  }

  test('whatever is sent, it takes no more than its share, and all of it is given back', async () => {
    const clients = await fill();
    expect(edge.life.bodies.heldBytes).toBeGreaterThan(most / 2);
    expect(edge.life.bodies.heldBytes).toBeLessThanOrEqual(most);
    found(null);
    await answered(clients, '401 Unauthorized');
    expect(edge.life.bodies.heldBytes).toBe(0);
    expect(edge.shed).toEqual([]);
  }, 60_000);

  test('whoever turns out to be known and was lost is asked to try again, the others are served', async () => {
    const clients = await fill();
    found(account);
    await answered(clients, 'HTTP/1.1 ');
    await Promise.all(clients.map(({ closed }) => closed));
    const served = clients.filter(({ text }) => text.includes('HTTP/1.1 200')).length;
    const refused = clients.filter(({ text }) => text.includes('HTTP/1.1 503'));
    expect(served + refused.length).toBe(clients.length);
    expect(served).toBeGreaterThan(0);
    expect(refused.length).toBeGreaterThan(0);
    for (const { text } of refused) expect(text).toMatch(/retry-after: \d/i);
    expect(edge.shed).toEqual(refused.map(() => 'body_bytes'));
    expect(edge.life.bodies.heldBytes).toBe(0);
  }, 60_000);

  test('a key that was good lately is served though strangers have filled theirs', async () => {
    const strangers = await fill();
    remembered = true;
    const client = edge.connect(request(other)).read();
    await eventually(async () => lookUps === strangers.length + 1 || undefined);
    found(account);
    await client.closed;
    expect(client.text).toContain(`{"length":${body.length}}`);
  }, 60_000);

  test('a client that leaves while its key is looked up leaves nothing in it', async () => {
    const clients = await fill();
    for (const { socket } of clients) socket.resetAndDestroy();
    await eventually(async () => edge.life.bodies.heldBytes === 0 || undefined, 30_000);
  }, 60_000);
});
