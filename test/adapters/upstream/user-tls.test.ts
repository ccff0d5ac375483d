/** TLS with servers of users: what a server may make of it, and that it takes no turn for itself. */
import { constants } from 'node:crypto';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import { Client } from 'undici';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createConnector } from '../../../src/adapters/upstream/guarded-connector.ts';
import { TlsTurns } from '../../../src/adapters/upstream/user-tls.ts';
import { outboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import { certificateAuthority } from '../../harness/servers/certificates.ts';
import { listen } from './local-server.ts';

const authority = certificateAuthority();
const { cert, key } = authority.issue(['127.0.0.1']);
const policy = outboundPolicy('allow-private', [], []);

/** What a client gets of a server with `chainBytes` of certificates behind its own. */
async function getFrom(listener: RequestListener, chainBytes = 0): Promise<string> {
  const more = authority.root.repeat(Math.ceil(chainBytes / derBytes(authority.root)));
  const { port } = await listen(createServer({ cert: cert + more, key }, listener));
  const connect = createConnector(policy, {
    userAddress: true,
    connectTimeoutMs: 30_000,
    ca: authority.root,
  });
  const client = new Client(`https://127.0.0.1:${port}`, { connect });
  onTestFinished(() => client.destroy());
  const { body } = await client.request({ method: 'GET', path: '/' });
  return body.text();
}

const derBytes = (pem: string): number => Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64').length;

describe('a handshake', () => {
  const hello: RequestListener = (_request, response) => response.end('hello');

  test('may have the certificates of a company', async () => {
    expect(await getFrom(hello, 10_000)).toBe('hello');
  });

  test('with long certificates is had by as many connections as there is room for, and by others again', async () => {
    const more = authority.root.repeat(Math.ceil(10_000 / derBytes(authority.root)));
    // No session of one before, with which no certificates come.
    const fresh = { maxVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_TICKET } as const;
    const { port } = await listen(createServer({ cert: cert + more, key, ...fresh }));
    const connect = createConnector(policy, {
      userAddress: true,
      connectTimeoutMs: 30_000,
      ca: authority.root,
    });
    const target = { hostname: '127.0.0.1', protocol: 'https:', port: String(port) };
    const open = () =>
      new Promise<Socket>((resolve, reject) => {
        connect(target as never, (error, socket) => (socket ? resolve(socket) : reject(error)));
      });
    const opened: Socket[] = [];
    let refusal: unknown = null;
    while (refusal === null && opened.length < 400) {
      await open().then(
        (socket) => opened.push(socket),
        (error: unknown) => (refusal = error),
      );
    }
    expect(refusal).toMatchObject({ kind: 'tls' });
    // Half of 64 MiB, at sixteen times 10 KB each.
    expect(opened.length).toBeGreaterThan(150);
    expect(opened.length).toBeLessThan(250);
    const closed = opened.map((socket) => once(socket, 'close'));
    for (const socket of opened) socket.destroy();
    await Promise.all(closed);
    (await open()).destroy();
  }, 60_000);

  test('with more certificates than anybody needs fails before they are looked at', async () => {
    await expect(getFrom(hello, 20_000)).rejects.toMatchObject({ kind: 'tls' });
  });
});

describe('an answer', () => {
  const inPieces =
    (pieces: number, piece: string): RequestListener =>
    async (_request, response) => {
      response.socket?.setNoDelay(true);
      for (let sent = 0; sent < pieces && !response.destroyed; sent += 1)
        if (!response.write(piece)) await new Promise((drained) => response.once('drain', drained));
      response.end();
    };

  test('in a record for each short event comes whole', async () => {
    const event = 'data: {"delta":"a"}\n\n';
    expect(await getFrom(inPieces(10_000, event))).toBe(event.repeat(10_000));
  });

  test.each([80, 110, 140, 170, 200])(
    'of %i KiB whose server closes comes whole, however late it is read',
    async (kib) => {
      const { port } = await listen(
        createServer({ cert, key }, (_request, response) => {
          response.setHeader('connection', 'close');
          response.end('.'.repeat(kib * 1024));
        }),
      );
      const connect = createConnector(policy, {
        userAddress: true,
        connectTimeoutMs: 30_000,
        ca: authority.root,
      });
      const client = new Client(`https://127.0.0.1:${port}`, { connect });
      onTestFinished(() => client.destroy());
      const { body } = await client.request({ method: 'GET', path: '/' });
      // Nobody reads, so what has come lies in every buffer there is when the server has gone.
      for (let turn = 0; turn < 2_000; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      expect((await body.text()).length).toBe(kib * 1024);
    },
  );

  test('of which every byte is a record is cut before it is long', async () => {
    const byByte: RequestListener = async ({ socket }) => {
      socket.setNoDelay(true);
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      // One after the other: what waits together becomes one record.
      for (let sent = 0; sent < 30_000 && !socket.destroyed; sent += 1)
        await new Promise<void>((written) => socket.write('.', () => written()));
      socket.end();
    };
    await expect(getFrom(byByte)).rejects.toThrow();
  });
});

test('a server that sends ever more session tickets is left', async () => {
  const { port } = await listen(createServer({ cert, key }));
  const options = { userAddress: false, connectTimeoutMs: 30_000, ca: authority.root };
  const target = { hostname: '127.0.0.1', protocol: 'https:', port: String(port) } as const;
  const socket = await new Promise<Socket>((resolve, reject) => {
    createConnector(policy, options)(target as never, (error, opened) =>
      opened ? resolve(opened) : reject(error),
    );
  });
  const failed = new Promise<Error>((resolve) => socket.once('error', resolve));
  for (let ticket = 0; ticket < 17; ticket += 1) socket.emit('session', Buffer.of(ticket));
  expect((await failed).message).toContain('too many TLS session tickets');
});

/** Until the end of the test, timers go on when it says so. */
function holdTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setImmediate'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

/** Turns by a clock of their own, and the names of what was fed. */
function watchedTurns() {
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  onTestFinished(() => {
    vi.restoreAllMocks();
  });
  const turns = new TlsTurns();
  const fed: string[] = [];
  const piece = (name: string, takesMs: number, handshakeWith: string | null = null) => ({
    isHandshake: handshakeWith !== null,
    origin: handshakeWith ?? 'x',
    server: (handshakeWith ?? 'x').split(':')[0] as string,
    feed: () => {
      fed.push(name);
      nowMs += takesMs;
    },
  });
  return { turns, fed, piece };
}

test('what takes long is done in a turn of its own, one after the other', async () => {
  const { turns, fed, piece } = watchedTurns();
  const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));
  turns.enter(piece('short', 1));
  turns.enter(piece('long', 70));
  turns.enter(piece('second', 70));
  turns.enter(piece('third', 10));
  turns.enter(piece('fourth', 10));
  expect(fed).toEqual(['short', 'long']);
  await nextTurn();
  expect(fed).toEqual(['short', 'long', 'second']);
  await nextTurn();
  expect(fed).toEqual(['short', 'long', 'second', 'third', 'fourth']);
  turns.enter(piece('fifth', 1));
  expect(fed.at(-1)).toBe('fifth');
});

test('a server whose handshake was dear waits four times as long before the next, and nobody else does', () => {
  holdTimers();
  const { turns, fed, piece } = watchedTurns();
  turns.enter(piece('dear', 60, 'dear:443'));
  turns.enter(piece('dear again', 60, 'dear:443'));
  turns.enter(piece('dear a third time', 60, 'dear:443'));
  turns.enter(piece('its stream', 1));
  turns.enter(piece('other', 2, 'other:443'));
  vi.advanceTimersByTime(239);
  expect(fed).toEqual(['dear', 'its stream', 'other']);
  vi.advanceTimersByTime(2);
  expect(fed.at(-1)).toBe('dear again');
  vi.advanceTimersByTime(238);
  expect(fed.at(-1)).toBe('dear again');
  vi.advanceTimersByTime(5);
  expect(fed.at(-1)).toBe('dear a third time');
});

test('a crowd of connections to a dear server keeps another dear one out for no more than one rest', () => {
  holdTimers();
  const { turns, fed, piece } = watchedTurns();
  turns.enter(piece('honest, once', 6, 'honest:443'));
  vi.advanceTimersByTime(30);
  for (let index = 0; index < 40; index += 1) turns.enter(piece(`dear ${index}`, 60, `dear:${index % 3}`));
  turns.enter(piece('honest', 1, 'honest:443'));
  vi.advanceTimersByTime(4 * 60 + 10);
  expect(fed.slice(0, 2)).toEqual(['honest, once', 'dear 0']);
  vi.advanceTimersByTime(4 * 60 + 10);
  expect(fed).toContain('honest');
  expect(fed.length).toBeLessThan(10);
});
