/**
 * Providers through a real forward proxy, with certificates of a company's own authority: from HTTPS_PROXY, NO_PROXY
 * and NODE_EXTRA_CA_CERTS to the vendor. How proxies fail: test/adapters/upstream/egress-proxy.test.ts.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { chat, chatOk } from '../harness/gateway/chat.ts';
import { addKey, registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { certificateAuthority } from '../harness/servers/certificates.ts';
import { useServer, useStarted } from '../harness/servers/use-started.ts';
import type { VendorPack } from '../harness/vendors/vendor-pack.ts';
import { startVendorPack } from '../harness/vendors/vendor-pack.ts';
import { startTinyproxy } from './support/tinyproxy.ts';

const login = { user: 'gateway', password: 's3cretOfTheProxy' };
const encoded = Buffer.from(`${login.user}:${login.password}`).toString('base64');
const india = { 'x-gateway-residency': 'india' };

const vendors = useServer(startVendorPack);
const company = useStarted(
  () => startCompany(vendors),
  ({ close }) => close(),
);
const open = useStarted(
  () => startTinyproxy(),
  ({ close }) => close(),
);
const guarded = useStarted(
  () => startTinyproxy(login),
  ({ close }) => close(),
);

const start = (env: Readonly<Record<string, string>>): Promise<GatewayUnderTest> =>
  startForTest({ vendors, env: { ...company.env, ...env } });
const withLogin = (password = login.password): string =>
  `http://${login.user}:${password}@127.0.0.1:${guarded.port}`;

test('a vendor with a certificate of the company is reached through the proxy, by name, over kept connections', async () => {
  const gateway = await start({ https_proxy: `http://127.0.0.1:${open.port}` });
  const user = await registerWithKeys(gateway.url, ['openai']);
  for (let count = 0; count < 3; count += 1)
    expect((await chatOk(user.client)).gateway.provider).toBe('openai');
  expect(open.output().match(new RegExp(`CONNECT ${company.place('openai')}`, 'g'))).toHaveLength(1);
});

describe('a proxy with credentials', () => {
  test('lets in who has them, and nobody reads them', async () => {
    const gateway = await start({ HTTPS_PROXY: withLogin(), GW_LOG_LEVEL: 'trace' });
    const user = await registerWithKeys(gateway.url, ['openai']);
    expect((await chatOk(user.client)).gateway.provider).toBe('openai');
    expect(gateway.output()).toContain('providers are reached through a proxy');
    for (const secret of [login.password, encoded]) expect(gateway.output()).not.toContain(secret);
  });

  test('refuses others before the vendor hears of it: the tier falls back past the proxy', async () => {
    const gateway = await start({
      HTTPS_PROXY: withLogin('wrongPassword'),
      NO_PROXY: company.place('sarvam'),
    });
    const user = await registerWithKeys(gateway.url, ['openai', 'sarvam']);
    expect((await chatOk(user.client)).gateway.provider).toBe('sarvam');
    const alone = await chat(user.client, {}, { 'x-gateway-override-model': 'openai:gpt-5.1' });
    expect(alone.status, alone.text).toBe(502);
    expect(alone.text).toContain("did not accept the gateway's credentials");
    expect(vendors.calls()).toEqual(['sarvam']);
    expect(gateway.output() + alone.text).not.toContain('wrongPassword');
  });
});

describe('a request that must stay in India', () => {
  test('does not pass a proxy of which nobody said where it stands', async () => {
    const gateway = await start({ HTTPS_PROXY: `http://127.0.0.1:${open.port}` });
    const user = await registerWithKeys(gateway.url, ['sarvam']);
    expect((await chatOk(user.client)).gateway.provider).toBe('sarvam');
    const before = open.output();
    const refused = await chat(user.client, {}, india);
    expect(refused.status, refused.text).toBe(502);
    expect(refused.text).toContain('address_refused');
    expect(refused.text).toContain('not in India');
    expect(open.output()).toBe(before);
    expect(vendors.calls()).toEqual(['sarvam']);
    expect(gateway.output()).toContain('requests that must stay in India do not pass the proxy');
  });

  test('passes one in India, and goes past any where NO_PROXY says so', async () => {
    const HTTPS_PROXY = `http://127.0.0.1:${open.port}`;
    for (const more of [{ GW_EGRESS_PROXY_REGION: 'india' }, { NO_PROXY: company.host }]) {
      const gateway = await start({ HTTPS_PROXY, ...more });
      const user = await registerWithKeys(gateway.url, ['sarvam']);
      expect((await chatOk(user.client, {}, india)).gateway.residency_actual).toBe('india');
    }
  });
});

test('the proxy is ours: no user reaches it as an endpoint', async () => {
  const gateway = await start({ HTTPS_PROXY: `http://127.0.0.1:${open.port}` });
  const user = await registerWithKeys(gateway.url, []);
  const base_url = `http://127.0.0.1:${open.port}`;
  await addKey(user, { provider: 'self_hosted', api_key: 'x', base_url, declared_region: 'here' });
  const before = open.output();
  const reached = await chat(user.client, {}, { 'x-gateway-override-model': 'self_hosted:m' });
  expect(reached.status, reached.text).toBe(502);
  expect(reached.text).toContain('address_refused');
  expect(open.output()).toBe(before);
});

/** The vendors behind TLS of a company's authority, under the name of this host, and the settings that lead there. */
async function startCompany(pack: VendorPack) {
  const folder = mkdtempSync(join(tmpdir(), 'gw-company-'));
  const host = hostname();
  const authority = certificateAuthority();
  writeFileSync(join(folder, 'ca.crt'), authority.root);
  const sockets = new Set<Socket>();
  const front = async (url: string) => {
    const server = createServer(authority.issue([host]), (client) => {
      const vendor = connect(Number(new URL(url).port), '127.0.0.1');
      for (const [one, other] of [
        [client, vendor],
        [vendor, client],
      ] as const) {
        sockets.add(one);
        one.on('error', () => other.destroy()).on('close', () => other.destroy());
        one.pipe(other);
      }
    });
    server.listen(0);
    await once(server, 'listening');
    return server;
  };
  const names = ['openai', 'sarvam'] as const;
  const servers = { openai: await front(pack.openai.url), sarvam: await front(pack.sarvam.url) };
  const place = (name: (typeof names)[number]): string =>
    `${host}:${(servers[name].address() as AddressInfo).port}`;
  return {
    host,
    place,
    env: {
      NODE_EXTRA_CA_CERTS: join(folder, 'ca.crt'),
      GW_OPENAI_BASE_URL: `https://${place('openai')}`,
      GW_SARVAM_BASE_URL: `https://${place('sarvam')}`,
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      for (const name of names) {
        const closed = once(servers[name], 'close');
        servers[name].close();
        await closed;
      }
      rmSync(folder, { recursive: true });
    },
  };
}
