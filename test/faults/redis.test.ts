/** Redis fails in every way it knows: each chat is a miss at worst, within 50 ms, and hits come back by themselves. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startGateway } from '../harness/gateway/start-gateway.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import type { Sent } from '../harness/ledgers/fault-load.ts';
import { becomeKnown, sendChat } from '../harness/ledgers/fault-load.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectWithin, median } from '../harness/measure/fault-bounds.ts';
import { probe, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { startRedis } from '../harness/servers/redis.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { startVendorPack } from '../harness/vendors/vendor-pack.ts';
import type { Completion } from '../harness/vendors/wire-types.ts';

const cached = { 'x-gateway-cache': 'true' };
/** More than the failures that open the breaker. */
const enoughToOpen = 8;

const redis = useServer(startRedis);
const vendors = useServer(startVendorPack);
const gateway = useGateway(() => ({ redisUrl: redis.url, vendors }));
let user: User;
let sent: Sent[] = [];

beforeEach(async () => {
  sent = [];
  user = await registerWithKeys(gateway.url, ['openai']);
  await untilHit(gateway);
});

/** A chat with caching that must be served; whether it was a hit. */
async function cachedChat(from: GatewayUnderTest, question: string): Promise<Sent & { hit: boolean }> {
  const body = { messages: [{ role: 'user', content: question }] };
  const one = await sendChat(from.url, user, { headers: cached, body });
  expect(one.status, one.text).toBe(200);
  sent.push(one);
  return { ...one, hit: (JSON.parse(one.text) as Completion).gateway.cache_hit };
}

async function untilHit(from: GatewayUnderTest): Promise<void> {
  const question = `again and again ${crypto.randomUUID()}`;
  await eventually(async () => (await cachedChat(from, question)).hit || undefined, 15_000);
}

/** Milliseconds of new questions, which no cache can know. */
async function missTimes(count: number): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const one = await cachedChat(gateway, `new ${crypto.randomUUID()}`);
    expect(one.hit).toBe(false);
    times.push(one.tookMs);
  }
  return times;
}

/** Every answer has one row; a miss was one call, a hit none. */
async function expectOneRowEach(): Promise<void> {
  await untilRowsStored(gateway);
  const hits = sent.filter((one) => (JSON.parse(one.text) as Completion).gateway.cache_hit).length;
  expect(vendors.ledger()).toHaveLength(sent.length - hits);
  const page = await user.client.get('/v1/logs?limit=1000');
  const rows = page.json<{ data: { cache_hit: boolean; status: string }[] }>().data;
  expect(rows).toHaveLength(sent.length);
  expect(rows.filter((row) => row.cache_hit)).toHaveLength(hits);
  expect(rows.every((row) => row.status === 'success')).toBe(true);
}

afterEach(expectOneRowEach);

describe('a Redis that hangs', () => {
  afterEach(() => redis.continueSignal());

  test('costs a chat at most 50 ms, then nothing, and is used again when it answers', async () => {
    const usualMs = median(await missTimes(20));
    redis.stopSignal();
    const times = await missTimes(enoughToOpen);
    expectWithin('chat beside a hung Redis, beyond its usual time', median(times.slice(0, 5)) - usualMs, 50);
    const laterMs = median(await missTimes(20));
    expectWithin('chat once the hang is known, beyond its usual time', laterMs - usualMs, 5);
    expect(await probe(gateway, '/readyz')).toBe(200);
    redis.continueSignal();
    await untilHit(gateway);
  });
});

describe('a Redis that is killed', () => {
  test('costs a chat next to nothing, and is used again when it is back', async () => {
    const usualMs = median(await missTimes(20));
    await redis.kill();
    const times = await missTimes(20);
    expectWithin('first chat without Redis, beyond its usual time', (times[0] ?? 0) - usualMs, 50);
    expectWithin('chat without Redis, beyond its usual time', median(times) - usualMs, 5);
    expect(await probe(gateway, '/readyz')).toBe(200);
    await redis.start();
    await untilHit(gateway);
  });
});

/** Another replica of the same service with a Redis of its own. */
/** One that knows the user: Postgres may answer it too late, which is not what is tested here. */
async function replicaOn(redisUrl: string): Promise<GatewayUnderTest> {
  const { database, env } = gateway;
  const own = { GW_SEALING_KEYS: env['GW_SEALING_KEYS'] };
  const replica = await startGateway({ redisUrl, vendors, database, env: own });
  sent.push(...(await becomeKnown(replica.url, user)).filter(({ status }) => status === 200));
  return replica;
}

describe('a Redis that is not there at the start', () => {
  test('delays nothing, and is used when it comes', async () => {
    const late = await startRedis();
    await late.kill();
    const replica = await replicaOn(late.url);
    try {
      expect((await cachedChat(replica, 'no cache yet')).hit).toBe(false);
      await late.start();
      await untilHit(replica);
    } finally {
      await replica.stop();
      await late.close();
    }
  });
});

describe('a Redis that is full', () => {
  test('is a miss for every chat and no error for any', async () => {
    const full = await startRedis(['--maxmemory', '1', '--maxmemory-policy', 'noeviction']);
    const replica = await replicaOn(full.url);
    try {
      // One that comes before the store has refused the answer of the one before shares that answer, as it should.
      const misses = async () => !(await cachedChat(replica, 'the same question')).hit || undefined;
      for (let index = 0; index < 10; index += 1) await eventually(misses);
    } finally {
      await replica.stop();
      await full.close();
    }
  });
});
