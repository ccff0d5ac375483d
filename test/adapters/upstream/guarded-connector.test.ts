import type { Server as HttpServer } from 'node:http';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import { Client } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ConnectError } from '../../../src/adapters/upstream/connect-error.ts';
import type { ConnectorOptions } from '../../../src/adapters/upstream/guarded-connector.ts';
import { createConnector } from '../../../src/adapters/upstream/guarded-connector.ts';
import type { HostLookup } from '../../../src/adapters/upstream/host-lookup.ts';
import { readNetworks } from '../../../src/core/net/network.ts';
import type { OutboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import { outboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import { certificateAuthority } from '../../harness/servers/certificates.ts';
import { listen } from './local-server.ts';

const allowPrivate = outboundPolicy('allow-private', [], []);
const publicOnly = outboundPolicy('public-only', [], []);
const authority = certificateAuthority();

const helloServer = (): HttpServer => createHttpServer((_request, response) => response.end('hello'));

/** Answers look-ups from a list, one entry per call, and counts the calls. */
function scriptedLookup(...answers: readonly (readonly string[])[]): { lookup: HostLookup; calls(): number } {
  let calls = 0;
  return {
    calls: () => calls,
    lookup: (_host, _signal, callback) => {
      const addresses = answers[Math.min(calls, answers.length - 1)] ?? [];
      calls += 1;
      queueMicrotask(() =>
        callback(
          null,
          addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        ),
      );
    },
  };
}

async function get(
  origin: string,
  policy: OutboundPolicy,
  options: Partial<ConnectorOptions> = {},
): Promise<string> {
  const connector = createConnector(policy, { userAddress: true, connectTimeoutMs: 30_000, ...options });
  const client = new Client(origin, { connect: connector });
  onTestFinished(() => client.destroy());
  const { body } = await client.request({ method: 'GET', path: '/' });
  return body.text();
}

async function failure(promise: Promise<unknown>): Promise<ConnectError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ConnectError);
  return error as ConnectError;
}

describe('connects', () => {
  test.each(['127.0.0.1', 'localhost', 'anything.localhost'])('to %s', async (host) => {
    const { port } = await listen(helloServer());
    expect(await get(`http://${host}:${port}`, allowPrivate)).toBe('hello');
  });

  test('to an address in an allowed network although only public ones are', async () => {
    const { port } = await listen(helloServer());
    const policy = outboundPolicy('public-only', readNetworks('127.0.0.0/8'), []);
    expect(await get(`http://127.0.0.1:${port}`, policy)).toBe('hello');
  });

  test('to the second address when the first one refuses', async () => {
    const { port } = await listen(helloServer());
    const { lookup } = scriptedLookup(['127.0.0.7', '127.0.0.1']);
    expect(await get(`http://name.example:${port}`, allowPrivate, { lookup })).toBe('hello');
  });

  test("to an operator's vendor address whatever its class", async () => {
    const { port } = await listen(helloServer());
    const answer = await get(`http://127.0.0.1:${port}`, publicOnly, { userAddress: false });
    expect(answer).toBe('hello');
  });
});

describe('refuses before a socket is opened', () => {
  test.each([
    ['a loopback literal', '127.0.0.1'],
    ['an odd spelling of it', '0x7f.1'],
    ['a decimal spelling of it', '2130706433'],
    ['a mapped literal', '[::ffff:127.0.0.1]'],
    ['a name of this host', 'localhost'],
  ])('%s, when only public addresses are allowed', async (_what, host) => {
    const { port, accepted } = await listen(helloServer());
    const error = await failure(get(`http://${host}:${port}`, publicOnly));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error).toMatchObject({ kind: 'forbidden-address', code: 'private-address' });
    expect(accepted).toHaveLength(0);
  });

  test.each([
    ['private', ['127.0.0.1']],
    ['mapped private', ['::ffff:127.0.0.1']],
    ['public and private in one answer', ['1.1.1.1', '127.0.0.1']],
    ['private and public in one answer', ['127.0.0.1', '1.1.1.1']],
  ])('a name that resolves to %s', async (_what, addresses) => {
    const { port, accepted } = await listen(helloServer());
    const { lookup } = scriptedLookup(addresses);
    const error = await failure(get(`http://rebound.example:${port}`, publicOnly, { lookup }));
    expect(error).toMatchObject({ kind: 'forbidden-address' });
    expect(accepted).toHaveLength(0);
  });

  test.each(['169.254.169.254', '100.100.100.200', '[fd00:ec2::254]', '[::ffff:a9fe:a9fe]'])(
    'the metadata address %s, for users and operators, under any policy',
    async (host) => {
      for (const policy of [allowPrivate, publicOnly]) {
        for (const userAddress of [true, false]) {
          const error = await failure(get(`http://${host}`, policy, { userAddress }));
          expect(error).toMatchObject({ kind: 'forbidden-address', code: 'metadata-address' });
        }
      }
    },
  );

  test('our own endpoints', async () => {
    const { port, accepted } = await listen(helloServer());
    const policy = outboundPolicy('allow-private', [], [{ address: '127.0.0.1', port }]);
    for (const host of ['127.0.0.1', 'localhost', '127.0.0.2', '[::1]']) {
      expect(await failure(get(`http://${host}:${port}`, policy))).toMatchObject({ code: 'own-endpoint' });
    }
    expect(accepted).toHaveLength(0);
  });
});

test('looks a name up once per connection and connects to the address it checked', async () => {
  const { port } = await listen(helloServer());
  // Would answer something else the second time.
  const { lookup, calls } = scriptedLookup(['127.0.0.1'], ['127.0.0.9']);
  expect(await get(`http://rebound.example:${port}`, allowPrivate, { lookup })).toBe('hello');
  expect(calls()).toBe(1);
});

describe('reports', () => {
  test('a closed port', async () => {
    const { port, close } = await listen(helloServer());
    close();
    const error = await failure(get(`http://127.0.0.1:${port}`, allowPrivate));
    expect(error).toMatchObject({
      kind: 'connect-refused',
      code: 'ECONNREFUSED',
    });
  });

  test('a name that does not exist', async () => {
    const error = await failure(get('http://does-not-exist.invalid', allowPrivate, { userAddress: false }));
    expect(error.kind).toBe('dns');
  });

  test('a look-up that never answers, within the budget', async () => {
    const silent: HostLookup = () => undefined;
    const error = await failure(
      get('http://silent.example', allowPrivate, { lookup: silent, connectTimeoutMs: 100 }),
    );
    expect(error.kind).toBe('dns');
  });

  test('a look-up without an address', async () => {
    const { lookup } = scriptedLookup([]);
    expect((await failure(get('http://empty.example', allowPrivate, { lookup }))).kind).toBe('dns');
  });

  test('a handshake that never ends, within the budget', async () => {
    const { port } = await listen(createTcpServer(() => undefined));
    const error = await failure(get(`https://127.0.0.1:${port}`, allowPrivate, { connectTimeoutMs: 100 }));
    expect(error.kind).toBe('connect-timeout');
  });

  test('a server that closes during the handshake', async () => {
    const { port } = await listen(createTcpServer((socket) => socket.resetAndDestroy()));
    const error = await failure(get(`https://127.0.0.1:${port}`, allowPrivate));
    expect(error.kind).toBe('connect-refused');
  });

  test('a server that does not speak TLS', async () => {
    const { port } = await listen(helloServer());
    expect((await failure(get(`https://127.0.0.1:${port}`, allowPrivate))).kind).toBe('tls');
  });
});

describe('TLS', () => {
  async function secureServer(names: string[], validDays?: number): Promise<{ port: number }> {
    const { cert, key } = authority.issue(names, validDays);
    return listen(createHttpsServer({ cert, key }, (_request, response) => response.end('secret')));
  }

  test('the name is verified although the connection goes to a checked address', async () => {
    const { port } = await secureServer(['llm.example']);
    const { lookup } = scriptedLookup(['127.0.0.1']);
    const options = { lookup, ca: authority.root };
    expect(await get(`https://llm.example:${port}`, allowPrivate, options)).toBe('secret');
  });

  test('a session is resumed only after it was verified', async () => {
    const { cert, key } = authority.issue(['llm.example']);
    const resumed: boolean[] = [];
    const server = createHttpsServer({ cert, key }, (request, response) => {
      resumed.push((request.socket as unknown as { isSessionReused(): boolean }).isSessionReused());
      response.setHeader('connection', 'close');
      response.end('secret');
    });
    const { port } = await listen(server);
    const { lookup } = scriptedLookup(['127.0.0.1']);
    const connector = createConnector(allowPrivate, {
      userAddress: true,
      connectTimeoutMs: 30_000,
      lookup,
      ca: authority.root,
    });
    for (let n = 0; n < 2; n += 1) {
      const client = new Client(`https://llm.example:${port}`, { connect: connector });
      const { body } = await client.request({ method: 'GET', path: '/' });
      expect(await body.text()).toBe('secret');
      await client.close();
    }
    expect(resumed).toEqual([false, true]);
  });

  test('an address literal is verified against the addresses of the certificate', async () => {
    const right = await secureServer(['127.0.0.1']);
    expect(await get(`https://127.0.0.1:${right.port}`, allowPrivate, { ca: authority.root })).toBe('secret');
    const wrong = await secureServer(['127.0.0.2']);
    const error = await failure(get(`https://127.0.0.1:${wrong.port}`, allowPrivate, { ca: authority.root }));
    expect(error.kind).toBe('tls');
  });

  test.each<[string, string, string[], number | undefined, string | undefined]>([
    ['for another host', 'ERR_TLS_CERT_ALTNAME_INVALID', ['other.example'], undefined, authority.root],
    ['that has expired', 'CERT_HAS_EXPIRED', ['llm.example'], -2, authority.root],
    ['of an unknown authority', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', ['llm.example'], undefined, undefined],
  ])('a certificate %s is refused, and called %s', async (_what, code, names, validDays, ca) => {
    const { port } = await secureServer(names, validDays);
    const { lookup } = scriptedLookup(['127.0.0.1']);
    const options = { lookup, ...(ca === undefined ? {} : { ca }) };
    const error = await failure(get(`https://llm.example:${port}`, allowPrivate, options));
    expect(error).toMatchObject({ kind: 'tls', code });
  });

  test('no environment variable switches verification off', async () => {
    const { port } = await secureServer(['llm.example']);
    const { lookup } = scriptedLookup(['127.0.0.1']);
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    onTestFinished(() => void delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']);
    expect((await failure(get(`https://llm.example:${port}`, allowPrivate, { lookup }))).kind).toBe('tls');
  });
});
