/**
 * Calls through a proxy by CONNECT, against a proxy of the test that answers as proxies do, or fails in each way they
 * can. With a real one, and from the settings on: test/stores/egress-proxy.test.ts.
 */
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import type { ConnectError } from '../../../src/adapters/upstream/connect-error.ts';
import type { ConnectTarget } from '../../../src/adapters/upstream/connector.ts';
import { createUpstream } from '../../../src/adapters/upstream/create-upstream.ts';
import type { ConnectorOptions } from '../../../src/adapters/upstream/guarded-connector.ts';
import { createConnector } from '../../../src/adapters/upstream/guarded-connector.ts';
import type { HostLookup } from '../../../src/adapters/upstream/host-lookup.ts';
import type { UpstreamHttp } from '../../../src/adapters/upstream/upstream-http-port.ts';
import type { UpstreamCall, UpstreamControl } from '../../../src/chat/ports.ts';
import type { Egress } from '../../../src/core/net/egress.ts';
import { parseProxyUrl } from '../../../src/core/net/egress-proxy.ts';
import { parseNoProxy } from '../../../src/core/net/no-proxy.ts';
import type { OutboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import { outboundPolicy } from '../../../src/core/net/outbound-policy.ts';
import { manySockets } from '../../harness/gateway/upstream-client.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { certificateAuthority } from '../../harness/servers/certificates.ts';
import type { ConnectProxy, ProxyAnswer } from '../../harness/servers/connect-proxy.ts';
import { startConnectProxy } from '../../harness/servers/connect-proxy.ts';
import type { LocalServer } from './local-server.ts';
import { callTo, listen } from './local-server.ts';

const authority = certificateAuthority();
const trusted = getCACertificates('default');
setDefaultCACertificates([...trusted, authority.root]);
afterAll(() => setDefaultCACertificates(trusted));

function startVendor(protocol: string, body = 'served'): Promise<LocalServer> {
  const certificate = authority.issue(['llm.example', '203.0.113.7']);
  return listen(
    protocol === 'https'
      ? createHttpsServer(certificate, (_request, response) => response.end(body))
      : createHttpServer((_request, response) => response.end(body)),
  );
}

async function startProxy(secure = false): Promise<ConnectProxy> {
  const proxy = await startConnectProxy(secure ? authority.issue(['localhost']) : undefined);
  onTestFinished(() => proxy.close());
  return proxy;
}

function through(url: string, more: Partial<Egress> = {}): OutboundPolicy {
  const proxy = parseProxyUrl(url);
  const egress: Egress = { https: proxy, http: proxy, bypass: [], residency: 'global', ...more };
  return outboundPolicy('allow-private', [], [], egress);
}

function open(policy: OutboundPolicy, client: 'own' | 'undici' = 'own'): UpstreamHttp {
  const upstream = createUpstream(client, policy, manySockets);
  onTestFinished(() => upstream.close());
  return upstream;
}

interface Ended {
  readonly end: string;
  readonly text: string;
  readonly control: UpstreamControl;
}

/** Resolves when the call is over and its socket is back in the pool. */
function send(upstream: UpstreamHttp, call: UpstreamCall, pausing = false): Promise<Ended> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const finish = (end: string) =>
      setImmediate(() => resolve({ end, text: Buffer.concat(parts).toString(), control }));
    const control: UpstreamControl = upstream.send(call, {
      onHead: () => undefined,
      onData: (chunk) => {
        parts.push(chunk);
        if (!pausing) return;
        control.pause();
        setImmediate(() => control.resume());
      },
      onEnd: () => finish('end'),
      onFailure: ({ kind }) => finish(kind),
    });
  });
}

describe.each(['own', 'undici'] as const)('the client "%s"', (client) => {
  describe.each([
    ['http', false],
    ['http', true],
    ['https', false],
    ['https', true],
  ] as const)('reaches %s origins through a proxy (TLS to it: %s)', (protocol, secure) => {
    test('by name, with its credentials, over one kept connection', async () => {
      const [vendor, proxy] = [await startVendor(protocol), await startProxy(secure)];
      const upstream = open(through(`${secure ? 'https' : 'http'}://u:p%40@localhost:${proxy.port}`), client);
      for (let count = 0; count < 3; count += 1) {
        const { end, text, control } = await send(
          upstream,
          callTo(`${protocol}://llm.example:${vendor.port}`),
        );
        expect([end, text]).toEqual(['end', 'served']);
        // Where the name leads, only the proxy knows.
        expect(control.addressClass).toBeNull();
      }
      expect(proxy.asked).toEqual([`llm.example:${vendor.port}`]);
      expect(proxy.logins).toEqual([`Basic ${Buffer.from('u:p@').toString('base64')}`]);
      expect([proxy.connections(), vendor.accepted.length]).toEqual([1, 1]);
    });

    test('and brings large answers whole, however slowly they are taken', async () => {
      const body = 'A part of a long answer. '.repeat(200_000);
      const [vendor, proxy] = [await startVendor(protocol, body), await startProxy(secure)];
      const upstream = open(through(`${secure ? 'https' : 'http'}://localhost:${proxy.port}`), client);
      const { end, text } = await send(upstream, callTo(`${protocol}://llm.example:${vendor.port}`), true);
      expect(end).toBe('end');
      expect(text === body).toBe(true);
      expect(proxy.logins).toEqual([null]);
    });
  });

  test('refuses a certificate for another name behind the proxy', async () => {
    const [vendor, proxy] = [await startVendor('https'), await startProxy()];
    const upstream = open(through(`http://localhost:${proxy.port}`), client);
    expect((await send(upstream, callTo(`https://other.example:${vendor.port}`))).end).toBe('tls');
  });

  test('goes past the proxy where NO_PROXY says so, and on this host', async () => {
    const [vendor, proxy] = [await startVendor('http'), await startProxy()];
    const bypass = parseNoProxy('llm.example');
    const upstream = open(through(`http://localhost:${proxy.port}`, { bypass }), client);
    expect((await send(upstream, callTo(`http://localhost:${vendor.port}`))).text).toBe('served');
    expect((await send(upstream, callTo(`http://llm.example:${vendor.port}`))).end).toBe('dns');
    expect(proxy.connections()).toBe(0);
  });

  test('sends nothing that must stay in India through a proxy elsewhere, not even over an open tunnel', async () => {
    const [vendor, proxy] = [await startVendor('http'), await startProxy()];
    const india = { residency: 'india', residencyBound: 'india' } as const;
    const origin = `http://llm.example:${vendor.port}`;
    const abroad = open(through(`http://localhost:${proxy.port}`), client);
    expect((await send(abroad, callTo(origin, { residency: 'india' }))).end).toBe('end');
    for (const where of [origin, `http://203.0.113.7:${vendor.port}`])
      for (const userAddress of [false, true]) {
        const provider = userAddress ? 'self_hosted' : 'sarvam';
        if (userAddress && where === origin) continue;
        expect((await send(abroad, callTo(where, { ...india, userAddress, provider }))).end).toBe(
          'proxy-abroad',
        );
      }
    expect((await send(abroad, callTo(origin, india))).end).toBe('proxy-abroad');
    expect([proxy.connections(), vendor.accepted.length]).toEqual([1, 1]);
    const there = open(through(`http://localhost:${proxy.port}`, { residency: 'india' }), client);
    expect((await send(there, callTo(origin, india))).text).toBe('served');
    expect((await send(abroad, callTo(`http://localhost:${vendor.port}`, india))).text).toBe('served');
  });

  test("names a user's address, never a name, and tells its class", async () => {
    const [vendor, proxy] = [await startVendor('http'), await startProxy()];
    const upstream = open(through(`http://localhost:${proxy.port}`), client);
    const call = callTo(`http://10.99.0.1:${vendor.port}`, { provider: 'self_hosted', userAddress: true });
    const { text, control } = await send(upstream, call);
    expect(text).toBe('served');
    expect(control.addressClass).toBe(client === 'own' ? 'private' : null);
    expect(proxy.asked).toEqual([`10.99.0.1:${vendor.port}`]);
  });

  test('an open tunnel that ends while idle is not used again', async () => {
    const [vendor, proxy] = [await startVendor('https'), await startProxy()];
    const upstream = open(through(`http://localhost:${proxy.port}`), client);
    const origin = `https://llm.example:${vendor.port}`;
    expect((await send(upstream, callTo(origin))).end).toBe('end');
    proxy.cutAll();
    await eventually(async () => (vendor.accepted.every(({ destroyed }) => destroyed) ? true : undefined));
    expect((await send(upstream, callTo(origin))).end).toBe('end');
    expect(proxy.connections()).toBe(2);
  });
});

const status = (code: number): ProxyAnswer => ({ says: `HTTP/1.1 ${code} No\r\n\r\nnot here` });

describe('a proxy that', () => {
  test.each<[what: string, answer: ProxyAnswer, kind: string]>([
    ['refuses (403)', status(403), 'proxy-refused'],
    ['redirects (302)', status(302), 'proxy-refused'],
    ['wants other credentials (407)', status(407), 'proxy-login'],
    ['calls them wrong (401)', status(401), 'proxy-login'],
    ['finds no way (502)', status(502), 'proxy-failed'],
    ['is late itself (504)', status(504), 'proxy-failed'],
    ['closes', 'cut', 'proxy-unreachable'],
    ['resets', 'reset', 'proxy-unreachable'],
    ['closes within its answer', { says: 'HTTP/1.1 200 Conn' }, 'proxy-unreachable'],
    ['speaks no HTTP', { says: 'SSH-2.0-OpenSSH_9.6\r\n\r\n' }, 'proxy-unreachable'],
    [
      'never ends its answer',
      { says: `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`, thenOpen: true },
      'proxy-unreachable',
    ],
    [
      'says more than it was asked',
      { says: 'HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', thenOpen: true },
      'proxy-unreachable',
    ],
  ])('%s costs the attempt, and no vendor hears of it', async (_what, answer, kind) => {
    for (const secure of [false, true]) {
      const [vendor, proxy] = [await startVendor('http'), await startProxy(secure)];
      proxy.answer = () => answer;
      const upstream = open(through(`${secure ? 'https' : 'http'}://u:s3cret@localhost:${proxy.port}`));
      expect((await send(upstream, callTo(`https://llm.example:${vendor.port}`))).end).toBe(kind);
      for (const socket of vendor.accepted) expect(socket.bytesRead).toBe(0);
      await eventually(async () => (proxy.open() === 0 ? true : undefined));
    }
  });

  test('is not there, or has no name, is told apart from a vendor that is not', async () => {
    const proxy = await startConnectProxy();
    await proxy.close();
    for (const url of [`http://localhost:${proxy.port}`, 'http://nowhere.invalid:3128'])
      expect((await send(open(through(url)), callTo('https://llm.example'))).end).toBe('proxy-unreachable');
  });

  test('shows a certificate that nobody trusts is not spoken to', async () => {
    const stranger = await startConnectProxy(certificateAuthority().issue(['localhost']));
    onTestFinished(() => stranger.close());
    const upstream = open(through(`https://u:s3cret@localhost:${stranger.port}`));
    expect((await send(upstream, callTo('https://llm.example'))).end).toBe('proxy-unreachable');
    expect(stranger.asked).toEqual([]);
  });

  test('cuts the tunnel during the handshake inside', async () => {
    const proxy = await startProxy();
    proxy.answer = () => ({ says: 'HTTP/1.1 200 OK\r\n\r\n' });
    const { end } = await send(
      open(through(`http://localhost:${proxy.port}`)),
      callTo('https://llm.example'),
    );
    expect(end).toBe('connect-refused');
  });

  test('says nothing is given up with its call: the proxy sees the end', async () => {
    const proxy = await startProxy();
    proxy.answer = () => 'silent';
    const upstream = open(through(`http://localhost:${proxy.port}`));
    const call = callTo('https://203.0.113.7', { provider: 'self_hosted', userAddress: true });
    const ended = new Promise<string>((resolve) => {
      const control = upstream.send(call, {
        onHead: () => undefined,
        onData: () => undefined,
        onEnd: () => resolve('end'),
        onFailure: ({ kind }) => resolve(kind),
      });
      void eventually(async () => (proxy.asked.length > 0 ? true : undefined)).then(() => control.abort());
    });
    expect(await ended).toBe('aborted');
    await eventually(async () => (proxy.open() === 0 ? true : undefined));
  });
});

/** One connection of the connector alone, whose look-up and limit the test chooses. */
function connect(
  policy: OutboundPolicy,
  options: Partial<ConnectorOptions>,
  target: Partial<ConnectTarget> = {},
): Promise<ConnectError | Socket> {
  const connector = createConnector(policy, { userAddress: true, connectTimeoutMs: 30_000, ...options });
  const where = {
    hostname: 'llm.example',
    protocol: 'https:',
    port: '',
    servername: 'llm.example',
    ...target,
  };
  return new Promise((resolve) => {
    connector(where, (error, socket) => {
      onTestFinished(() => void socket?.destroy());
      resolve(error === null ? socket : (error as ConnectError));
    });
  });
}

const answering =
  (...addresses: string[]): HostLookup =>
  (_host, _signal, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );

describe("a user's host name", () => {
  test('is resolved here: the proxy is asked for the address, and the certificate for the name', async () => {
    const [vendor, proxy] = [await startVendor('https'), await startProxy()];
    const policy = through(`http://localhost:${proxy.port}`);
    const lookup = answering('203.0.113.7');
    const port = String(vendor.port);
    const reached: (string | null)[] = [];
    const onReached = (address: string | null): void => void reached.push(address);
    expect(await connect(policy, { lookup }, { port, onReached })).toHaveProperty('encrypted', true);
    expect(proxy.asked).toEqual([`203.0.113.7:${port}`]);
    expect(reached).toEqual(['203.0.113.7']);
    const wrong = await connect(policy, { lookup }, { port, servername: 'x.example', hostname: 'x.example' });
    expect(wrong).toMatchObject({ kind: 'tls' });
  });

  test.each([
    ['a metadata service', ['169.254.169.254']],
    ['a private network', ['10.0.0.1']],
    ['a public and a private address', ['203.0.113.7', '10.0.0.1']],
  ])('that leads to %s is refused before the proxy hears of it', async (_what, addresses) => {
    const proxy = await startProxy();
    const policy = { ...through(`http://localhost:${proxy.port}`), mode: 'public-only' } as const;
    const refused = await connect(policy, { lookup: answering(...addresses) });
    expect(refused).toMatchObject({ kind: 'forbidden-address' });
    expect(proxy.connections()).toBe(0);
  });

  test('that leads into a network of NO_PROXY is connected to directly', async () => {
    const [vendor, proxy] = [await startVendor('http'), await startProxy()];
    const policy = through(`http://localhost:${proxy.port}`, { bypass: parseNoProxy('127.0.0.0/8') });
    const target = { protocol: 'http:', port: String(vendor.port) };
    expect(await connect(policy, { lookup: answering('127.0.0.1') }, target)).toHaveProperty('remoteAddress');
    expect(proxy.connections()).toBe(0);
  });

  test('with addresses of both families has the other one tried where the proxy cannot reach the first', async () => {
    const [vendor, proxy] = [await startVendor('http'), await startProxy()];
    proxy.answer = (asked) => (asked.startsWith('[') ? status(503) : 'open');
    const policy = through(`http://localhost:${proxy.port}`);
    const lookup = answering('2001:db8::7', '2001:db8::8', '203.0.113.7');
    const target = { protocol: 'http:', port: String(vendor.port) };
    expect(await connect(policy, { lookup }, target)).toHaveProperty('remoteAddress');
    expect(proxy.asked).toEqual([`[2001:db8::7]:${vendor.port}`, `203.0.113.7:${vendor.port}`]);
  });
});

describe('the limit of time holds', () => {
  test('while the proxy does not answer CONNECT', async () => {
    const proxy = await startProxy();
    proxy.answer = () => 'silent';
    const late = await connect(through(`http://localhost:${proxy.port}`), {
      lookup: answering('203.0.113.7'),
      connectTimeoutMs: 100,
    });
    expect(late).toMatchObject({ kind: 'connect-timeout' });
  });

  test('while the proxy does not begin TLS', async () => {
    const proxy = await startProxy();
    const late = await connect(through(`https://localhost:${proxy.port}`), {
      lookup: answering('203.0.113.7'),
      connectTimeoutMs: 100,
    });
    expect(late).toMatchObject({ kind: 'proxy-unreachable' });
  });

  test('while the vendor behind it does not begin TLS', async () => {
    const proxy = await startProxy();
    proxy.answer = () => ({ says: 'HTTP/1.1 200 OK\r\n\r\n', thenOpen: true });
    const mute = await startConnectProxy();
    onTestFinished(() => mute.close());
    const late = await connect(
      through(`http://localhost:${proxy.port}`),
      { lookup: answering('203.0.113.7'), connectTimeoutMs: 300 },
      { port: String(mute.port) },
    );
    expect(late).toMatchObject({ kind: 'connect-timeout' });
  });
});
