/** TLS with servers of users: what a server may make of it, and that it takes no turn for itself. */
import { constants } from 'node:crypto';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import { Client } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createConnector } from '../../../src/adapters/upstream/guarded-connector.ts';
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
