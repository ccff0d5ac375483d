/** IPv6: both listeners on `::`, and literals in every URL, for Postgres, Redis, the proxy, vendors and endpoints. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { chat, chatOk } from '../harness/gateway/chat.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { addKey, registerWithKeys } from '../harness/gateway/register.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { metric } from '../harness/measure/fault-metrics.ts';
import { startConnectProxy } from '../harness/servers/connect-proxy.ts';
import { createDatabase } from '../harness/servers/postgres.ts';
import { startRedisServer } from '../harness/servers/redis-servers.ts';
import { closeAfterTest, useServer, useStarted } from '../harness/servers/use-started.ts';
import { startVendorPack } from '../harness/vendors/vendor-pack.ts';
import { untilHit } from './support/cached-chats.ts';

const hasIpv6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
);
const vendors = useServer(startVendorPack);
const database = useStarted(
  () => createDatabase(),
  (made) => made.drop(),
);

test.skipIf(!hasIpv6)('everything works by addresses of IPv6', async () => {
  const redis = closeAfterTest(await startRedisServer([]));
  const proxy = closeAfterTest(await startConnectProxy());
  const databaseUrl = new URL(database.url);
  const six = async (port: number | string): Promise<string> =>
    `[::1]:${(await startRelay(Number(port))).port}`;
  databaseUrl.host = await six(databaseUrl.port);
  const vendorAt = await six(new URL(vendors.openai.url).port);
  const gateway = await startForTest({
    vendors,
    database,
    redisUrl: `redis://${await six(redis.port)}`,
    env: {
      GW_HOST: '::',
      GW_ADMIN_HOST: '::',
      DATABASE_URL: databaseUrl.href,
      GW_OPENAI_BASE_URL: `http://${vendorAt}`,
      GW_TOGETHER_BASE_URL: `http://together.example:${new URL(vendors.together.url).port}`,
      HTTP_PROXY: `http://${await six(proxy.port)}`,
      NO_PROXY: '[::1],fd00::/8',
    },
  });
  const user = await registerWithKeys(gateway.url, ['openai']);
  expect((await chatOk(user.client)).gateway.provider).toBe('openai');
  await eventually(async () => (await metric(gateway, 'gw_redis_up')) === 1 || undefined);
  await untilHit(gateway, user);
  for (const url of [gateway.url, gateway.adminUrl]) {
    const answer = await httpClient(url.replace('127.0.0.1', '[::1]')).get('/healthz');
    expect(answer.status).toBe(url === gateway.adminUrl ? 200 : 404);
  }

  const base_url = `http://${vendorAt}`;
  await addKey(user, { provider: 'self_hosted', api_key: 'x', base_url, declared_region: 'here' });
  const own = await chat(user.client, {}, { 'x-gateway-override-model': 'self_hosted:m' });
  expect(own.status, own.text).toBe(200);
  const other = await registerWithKeys(gateway.url, ['together']);
  const proxied = await chat(other.client, {}, { 'x-gateway-override-model': 'together:m' });
  expect(proxied.status, proxied.text).toBe(200);
  expect(proxy.asked).toEqual([`together.example:${new URL(vendors.together.url).port}`]);
  // The stores are ours by these addresses too.
  const stolen = { provider: 'self_hosted', api_key: 'x', declared_region: 'here' };
  await addKey(user, { ...stolen, base_url: `http://${databaseUrl.host}` });
  const refused = await chat(user.client, {}, { 'x-gateway-override-model': 'self_hosted:m' });
  expect(refused.text).toContain('address_refused');
});

/** Carries connections from a port of ::1 to one of 127.0.0.1. */
async function startRelay(port: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const target = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
      one.pipe(other);
    }
  });
  server.listen(0, '::1');
  await once(server, 'listening');
  return closeAfterTest({
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  });
}
