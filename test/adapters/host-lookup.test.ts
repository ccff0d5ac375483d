import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import type { HostAddress } from '../../src/adapters/host-lookup.ts';
import { lookupBySystem, lookupWithoutThread } from '../../src/adapters/host-lookup.ts';

const typeA = 1;
const nxdomain = 3;
/** Without a network the system's look-up takes its time to fail. */
const offlineMs = 60_000;
let dns: Socket | null = null;

afterEach(() => {
  dns?.close();
  dns = null;
});

type Reply = readonly string[] | 'nxdomain' | 'silence';

/** A name server on loopback; `reply` is asked for each question with the family that is wanted. */
async function nameServer(reply: (family: 4 | 6) => Reply): Promise<{ server: string; questions(): number }> {
  let questions = 0;
  const socket = createSocket('udp4');
  dns = socket;
  socket.on('message', (query, { port, address }) => {
    questions += 1;
    const end = query.indexOf(0, 12) + 5;
    const answers = reply(query.readUInt16BE(end - 4) === typeA ? 4 : 6);
    if (answers !== 'silence') socket.send(response(query.subarray(0, end), answers), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { server: `127.0.0.1:${socket.address().port}`, questions: () => questions };
}

/** RFC 1035 section 4, one question and its addresses. */
function response(query: Buffer, answers: readonly string[] | 'nxdomain'): Buffer {
  const records = answers === 'nxdomain' ? [] : answers;
  const head = Buffer.from(query);
  head.writeUInt16BE(0x8180 | (answers === 'nxdomain' ? nxdomain : 0), 2);
  head.writeUInt16BE(records.length, 6);
  head.writeUInt32BE(0, 8);
  const type = query.subarray(query.length - 4, query.length - 2);
  const parts = records.map((text) => {
    const bytes = Buffer.from(text.includes('.') ? text.split('.').map(Number) : [...Buffer.alloc(15), 1]);
    return Buffer.concat([
      Buffer.from('c00c', 'hex'),
      type,
      Buffer.from('00010000000000', 'hex'),
      Buffer.of(bytes.length),
      bytes,
    ]);
  });
  return Buffer.concat([head, ...parts]);
}

function resolve(
  lookup: typeof lookupBySystem,
  host: string,
  signal: AbortSignal = new AbortController().signal,
): Promise<readonly HostAddress[]> {
  return new Promise((done, fail) => {
    lookup(host, signal, (error, addresses) => (error === null ? done(addresses) : fail(error)));
  });
}

describe('both look-ups', () => {
  test.each([
    ['127.0.0.1', [{ address: '127.0.0.1', family: 4 }]],
    ['::1', [{ address: '::1', family: 6 }]],
    [
      'localhost',
      [
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ],
    ],
    [
      'a.localhost',
      [
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ],
    ],
  ])('know %s without asking', async (host, expected) => {
    const { server, questions } = await nameServer(() => 'nxdomain');
    expect(await resolve(lookupBySystem, host)).toEqual(expected);
    expect(await resolve(lookupWithoutThread([server]), host)).toEqual(expected);
    expect(questions()).toBe(0);
  });

  test('fail for a name that nobody knows', { timeout: offlineMs }, async () => {
    const { server } = await nameServer(() => 'nxdomain');
    await expect(resolve(lookupBySystem, 'does-not-exist.invalid')).rejects.toThrow();
    await expect(resolve(lookupWithoutThread([server]), 'does-not-exist.invalid')).rejects.toThrow();
  });
});

describe('the look-up of user-chosen names', () => {
  test('gives the addresses of both families', async () => {
    const { server } = await nameServer((family) => (family === 4 ? ['10.0.0.1', '10.0.0.2'] : ['::1']));
    const found = await resolve(lookupWithoutThread([server]), 'both.example');
    expect(found.map(({ address }) => address).sort()).toEqual(['10.0.0.1', '10.0.0.2', '::1']);
  });

  test.each<[string, Reply]>([
    ['says no', 'nxdomain'],
    ['says that there is none', []],
    ['says nothing', 'silence'],
  ])('gives the one family when the server of the other %s', async (_what, other) => {
    const { server } = await nameServer((family) => (family === 4 ? ['10.0.0.1'] : other));
    expect(await resolve(lookupWithoutThread([server]), 'one.example')).toEqual([
      { address: '10.0.0.1', family: 4 },
    ]);
  });

  test('does not wait for a name that never answers once the caller gave up, nor do others behind it', {
    timeout: offlineMs,
  }, async () => {
    const silent = await nameServer(() => 'silence');
    const lookup = lookupWithoutThread([silent.server]);
    const budgets = Array.from({ length: 16 }, () => new AbortController());
    let calledBack = 0;
    for (const budget of budgets) lookup('stuck.example', budget.signal, () => (calledBack += 1));
    // With 16 names stuck, the threads of the system's look-up are free.
    expect(await resolve(lookupBySystem, '127.0.0.1')).toHaveLength(1);
    await expect(resolve(lookupBySystem, 'does-not-exist.invalid')).rejects.toThrow();
    for (const budget of budgets) budget.abort();
    await new Promise((done) => setImmediate(done));
    expect(calledBack).toBe(0);
  });
});
