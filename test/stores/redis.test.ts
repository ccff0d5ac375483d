/** Redis behind TLS with users of limited rights, and behind sentinels: used where it can be, and never an error. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { freePort } from '../../src/dev/free-port.ts';
import { readDocument } from '../docs/documents.ts';
import { addKey, registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { failures, sendChat, startLoad } from '../harness/ledgers/fault-load.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectWithin } from '../harness/measure/fault-bounds.ts';
import { metric } from '../harness/measure/fault-metrics.ts';
import { certificateAuthority } from '../harness/servers/certificates.ts';
import { startRedisServer, startSentinels } from '../harness/servers/redis-servers.ts';
import { closeAfterTest, useStarted } from '../harness/servers/use-started.ts';
import { isHit, untilHit } from './support/cached-chats.ts';

/** All that the gateway needs, as operators read it. */
const rights = readDocument('docs/operations.md').match(/`(\+@connection [^`]*~gw:\*)`/)?.[1] ?? '';

test('the manual grants every command that the sources have', () => {
  const folder = join(import.meta.dirname, '../../src/adapters/redis');
  const sources = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  const used = sources.flatMap((text) => [
    ...(text.includes('.defineCommand(') ? ['evalsha'] : []),
    ...[...text.matchAll(/redis\.call\('([A-Z]+)'/g)].map(([, command = '']) => command.toLowerCase()),
    ...[...text.matchAll(/#redis\s*\.(getrange|set|unlink|evalsha|eval|get|del)/g)].map(
      ([, command]) => command,
    ),
  ]);
  expect(used).toContain('incr');
  const granted: readonly (string | undefined)[] = rights.match(/(?<=\+)[a-z]+/g) ?? [];
  expect([...new Set(used)].filter((command) => !granted.includes(command))).toEqual([]);
});

describe('TLS, client certificates and a user of its own', () => {
  const server = useStarted(startTlsRedis, ({ close }) => close());

  test('answers are cached and registrations counted, with the rights of the manual and no more', async () => {
    const gateway = await startForTest({
      redisUrl: server.url(
        'gateway:s3cr%40t',
        'cacert=FILES/ca.crt&cert=FILES/client.crt&key=FILES/client.key',
      ),
      env: { GW_REGISTRATIONS_PER_MINUTE: '3' },
    });
    await eventually(async () => (await metric(gateway, 'gw_redis_up')) === 1 || undefined);
    const user = await registerWithKeys(gateway.url, ['openai']);
    await untilHit(gateway, user);
    // A window of all replicas: one of this process alone would not know of the server.
    expect(await metric(gateway, 'gw_cache_errors_total')).toBe(0);
    await registerUser(gateway.url);
    await registerUser(gateway.url);
    await expect(registerUser(gateway.url)).rejects.toThrow('429');
  });

  test.each([
    [
      'an authority that did not sign it',
      'gateway:s3cr%40t',
      'cacert=FILES/other.crt&cert=FILES/client.crt&key=FILES/client.key',
    ],
    ['no client certificate', 'gateway:s3cr%40t', 'cacert=FILES/ca.crt'],
    [
      'another name',
      'gateway:s3cr%40t',
      'cacert=FILES/ca.crt&cert=FILES/client.crt&key=FILES/client.key&sni=redis.example',
    ],
    ['a wrong password', 'gateway:wrong', 'cacert=FILES/ca.crt&cert=FILES/client.crt&key=FILES/client.key'],
  ])('%s: every chat is served, and the cache is down', async (_, login, query) => {
    const gateway = await startForTest({ redisUrl: server.url(login, query) });
    const user = await registerWithKeys(gateway.url, ['openai']);
    const isDown = () => gateway.logs().some(({ msg }) => String(msg).startsWith('cache store is down'));
    await eventually(async () => isDown() || undefined);
    const question = crypto.randomUUID();
    for (let time = 0; time < 3; time += 1) expect(await isHit(gateway, user, question)).toBe(false);
    expect(await metric(gateway, 'gw_redis_up')).toBe(0);
    expect(gateway.output()).not.toMatch(/s3cr|wrong/);
  });
});

test('sentinels name another primary under load: every chat is served, and hits are back within 2 s', async () => {
  const world = closeAfterTest(await startSentinels());
  const gateway = await startForTest({ redisUrl: world.url });
  const user = await registerWithKeys(gateway.url, ['openai']);
  await untilHit(gateway, user);
  const load = startLoad({ url: gateway.url, users: [user], workers: 3 });
  await load.more(30);
  const port = await world.failOver();
  const promotedAtMs = performance.now();
  await untilHit(gateway, user);
  expectWithin('first hit after the promotion', performance.now() - promotedAtMs, 2000);
  await load.more(30);
  expect(failures(await load.stop())).toEqual([]);

  // It was in no setting, and is ours all the same.
  await addKey(user, {
    provider: 'self_hosted',
    api_key: 'x',
    base_url: `http://127.0.0.1:${port}`,
    declared_region: 'here',
  });
  const reached = await sendChat(gateway.url, user, {
    headers: { 'x-gateway-override-model': 'self_hosted:m' },
  });
  expect(reached.status, reached.text).toBe(502);
  expect(reached.text).toContain('not allowed');
});

async function startTlsRedis() {
  const folder = mkdtempSync(join(tmpdir(), 'gw-redis-tls-'));
  const [ours, theirs] = [certificateAuthority(), certificateAuthority()];
  const [server, client] = [ours.issue(['localhost']), ours.issue(['client'])];
  for (const [name, text] of Object.entries({
    'ca.crt': ours.root,
    'other.crt': theirs.root,
    'server.crt': server.cert,
    'server.key': server.key,
    'client.crt': client.cert,
    'client.key': client.key,
  })) {
    writeFileSync(join(folder, name), text);
  }
  const port = await freePort();
  const running = await startRedisServer(
    [
      `tls-port ${port}`,
      ...[`tls-cert-file ${folder}/server.crt`, `tls-key-file ${folder}/server.key`],
      ...[`tls-ca-cert-file ${folder}/ca.crt`, 'tls-auth-clients yes'],
      'user default off',
      `user gateway on >s3cr@t ${rights}`,
    ],
    { port },
  );
  return {
    url: (login: string, query: string) =>
      `rediss://${login}@localhost:${port}/0?${query.replaceAll('FILES', folder)}`,
    close: async () => {
      await running.close();
      rmSync(folder, { recursive: true });
    },
  };
}
