/** A cluster of Redis: entries lie on all shards, and a shard that fails over costs misses, never an error. */
import { expect, test } from 'vitest';
import { registerUser, registerWithKeys } from '../harness/gateway/register.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { failures, startLoad } from '../harness/ledgers/fault-load.ts';
import { expectWithin } from '../harness/measure/fault-bounds.ts';
import { closeAfterTest } from '../harness/servers/use-started.ts';
import { untilHit } from './support/cached-chats.ts';
import { startRedisCluster } from './support/redis-cluster.ts';

/** As many questions as surely lie on all three shards. */
const questions = 24;

test('a primary of the cluster is replaced under load: every chat is served, and all shards hit within 2 s', async () => {
  const cluster = closeAfterTest(await startRedisCluster());
  const gateway = await startForTest({
    redisUrl: cluster.url,
    env: { GW_REGISTRATIONS_PER_MINUTE: '2' },
  });
  const user = await registerWithKeys(gateway.url, ['openai']);
  await registerUser(gateway.url);
  // A script over two keys, on one shard by their hash tag.
  await expect(registerUser(gateway.url)).rejects.toThrow('429');
  for (let one = 0; one < questions; one += 1) await untilHit(gateway, user);
  const load = startLoad({ url: gateway.url, users: [user], workers: 3 });
  await load.more(30);
  await cluster.failOver();
  const promotedAtMs = performance.now();
  for (let one = 0; one < questions; one += 1) await untilHit(gateway, user);
  expectWithin('hits on all shards after the promotion', performance.now() - promotedAtMs, 2000);
  await load.more(30);
  expect(failures(await load.stop())).toEqual([]);
});
