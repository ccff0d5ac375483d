/** SPEC 4.5, routing rule 4, and 2.4: the opt-in cache. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  chat,
  chatBody,
  chatOk,
  chatPath,
  gatewayOf,
  logRowsOnceThere,
  streamed,
} from '../harness/gateway/chat.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { providerSecret, registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { startReplicaForTest } from '../harness/gateway/use-replica.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { metric } from '../harness/measure/fault-metrics.ts';
import { startRedis } from '../harness/servers/redis.ts';
import { useRedis } from '../harness/servers/use-redis.ts';
import { useServer } from '../harness/servers/use-started.ts';
import { answer, failure, tokensThen } from '../harness/vendors/vendor-plans.ts';
import { gate, heldBy } from '../harness/vendors/vendor-reply.ts';
import type { Completion } from '../harness/vendors/wire-types.ts';

const cached = { 'x-gateway-cache': 'true' };
const fresh = (additions: Record<string, unknown> = {}) => ({
  messages: [{ role: 'user', content: `question ${randomUUID()}` }],
  ...additions,
});

type Store = 'memory' | 'redis';

/** A busy machine makes Redis late for its 40 ms, and that is a miss: such a test is tried again. */
const whileLate = { retry: 3 };

/** Resolves once the cache keeps answers: after some late ones it is not asked for a second. */
async function untilCached(gateway: GatewayUnderTest): Promise<void> {
  const { client } = await registerWithKeys(gateway.url);
  const question = fresh();
  await eventually(async () => (await chatOk(client, question, cached)).gateway.cache_hit || undefined);
  gateway.vendors.clear();
}

function keepsAnswers(store: Store): void {
  const redis = store === 'redis' ? useServer(startRedis) : null;
  const gateway = useGateway(() => (redis === null ? {} : { redisUrl: redis.url }));
  const user = useUser(gateway);
  beforeEach(() => untilCached(gateway));

  const calls = () => gateway.vendors.ledger().length;

  test('a second equal request is a hit', async () => {
    const question = fresh();
    const first = await chatOk(user.client, question, cached);
    const second = await chatOk(user.client, question, cached);
    expect(calls()).toBe(1);
    expect(first.gateway).toMatchObject({ cache_hit: false, provider: 'openai', residency_actual: 'global' });
    expect(second.gateway).toMatchObject({
      cache_hit: true,
      provider: 'cache',
      model: 'openai:gpt-test',
      mode: 'gw/balanced',
      residency_actual: 'cache',
      cost_usd: '0.000000',
    });
    expect(second.gateway.request_id).not.toBe(first.gateway.request_id);
    const { gateway: _first, ...firstRest } = first;
    const { gateway: _second, ...secondRest } = second;
    expect(secondRest).toEqual(firstRest);
  });

  test('a hit has its own row, with the tokens kept and nothing charged', async () => {
    const owner = await registerWithKeys(gateway.url);
    const question = fresh();
    for (let index = 0; index < 2; index += 1) await chatOk(owner.client, question, cached);
    const [hit, miss] = await logRowsOnceThere(owner.client, 2);
    expect(miss).toMatchObject({ cache_hit: false, provider: 'openai', input_tokens: 11, output_tokens: 7 });
    expect(hit).toMatchObject({
      cache_hit: true,
      provider: 'cache',
      model: 'openai:gpt-test',
      residency_actual: 'cache',
      input_tokens: 11,
      output_tokens: 7,
      cost_usd: '0.000000',
      status: 'success',
      mode: 'gw/balanced',
    });
  });

  test('nothing is looked up or stored without the header', async () => {
    const question = fresh();
    await chatOk(user.client, question);
    expect((await chatOk(user.client, question, cached)).gateway.cache_hit).toBe(false);
    expect((await chatOk(user.client, question)).gateway.cache_hit).toBe(false);
    expect(calls()).toBe(3);
  });

  test('another user with the same question misses', async () => {
    const other = await registerWithKeys(gateway.url);
    const question = fresh();
    await chatOk(user.client, question, cached);
    expect((await chatOk(other.client, question, cached)).gateway.cache_hit).toBe(false);
  });

  test.each([
    ['temperature', { temperature: 0.5 }],
    ['model', { model: 'gw/premium' }],
    ['max_tokens', { max_tokens: 5 }],
    ['seed', { seed: 1 }],
    ['stop', { stop: 'x' }],
    ['n', { n: 2 }],
    ['user', { user: 'someone' }],
    ['tools', { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }] }],
    ['response_format', { response_format: { type: 'json_object' } }],
  ])('a different %s misses', async (_name, change) => {
    const question = fresh();
    await chatOk(user.client, question, cached);
    expect((await chatOk(user.client, { ...question, ...change }, cached)).gateway.cache_hit).toBe(false);
  });

  test('an earlier message, a name, or the order of messages misses', async () => {
    const [a, b] = [
      { role: 'user', content: randomUUID() },
      { role: 'user', content: randomUUID() },
    ];
    const variants = [[a, b], [b, a], [b], [{ ...a, name: 'x' }, b]];
    for (const messages of variants)
      expect((await chatOk(user.client, { messages }, cached)).gateway.cache_hit).toBe(false);
  });

  test('the order of the fields does not matter', async () => {
    const { messages } = fresh();
    const one = JSON.stringify({ model: 'gw/balanced', messages, temperature: 0 });
    const two = JSON.stringify({ temperature: 0, messages, model: 'gw/balanced' });
    await user.client.post(chatPath, one, cached);
    const second = (await user.client.post(chatPath, two, cached)).json<Completion>();
    expect(second.gateway.cache_hit).toBe(true);
  });

  test('an override is kept apart from the tier and from other overrides', async () => {
    const question = fresh();
    await chatOk(user.client, question, cached);
    const via = (model: string) => ({ ...cached, 'x-gateway-override-model': model });
    const first = await chatOk(user.client, question, via('openai:gpt-test'));
    expect(first.gateway).toMatchObject({ cache_hit: false, mode: 'override' });
    expect((await chatOk(user.client, question, via('openai:other'))).gateway.cache_hit).toBe(false);
    expect((await chatOk(user.client, question, via('openai:gpt-test'))).gateway).toMatchObject({
      cache_hit: true,
      mode: 'override',
    });
  });

  test('an India request is never served an answer from outside India', async () => {
    const question = fresh();
    await chatOk(user.client, question, cached);
    const inIndia = { ...cached, 'x-gateway-residency': 'india' };
    const first = await chatOk(user.client, question, inIndia);
    expect(first.gateway).toMatchObject({ cache_hit: false, provider: 'sarvam' });
    expect((await chatOk(user.client, question, inIndia)).gateway).toMatchObject({
      cache_hit: true,
      model: 'sarvam:sarvam-test',
      residency_actual: 'cache',
    });
  });

  test('a JSON answer is replayed as a stream', async () => {
    const question = fresh();
    const first = await chatOk(user.client, question, cached);
    const replay = await streamed(
      user.client,
      { ...question, stream_options: { include_usage: true } },
      cached,
    );
    expect(calls()).toBe(1);
    expect(replay.content).toBe(first.choices[0]?.message['content']);
    expect(replay.done).toBe(true);
    expect(gatewayOf(replay)).toMatchObject({ cache_hit: true, provider: 'cache', model: 'openai:gpt-test' });
    expect(replay.chunks.map((chunk) => chunk.choices?.[0]?.finish_reason).filter(Boolean)).toEqual(['stop']);
    expect(replay.chunks.filter((chunk) => chunk.usage != null)).toEqual(replay.gatewayChunks);
  });

  test('a stream is replayed as JSON, and as a stream', async () => {
    const question = fresh();
    const first = await streamed(user.client, question, cached);
    expect(gatewayOf(first).cache_hit).toBe(false);
    const json = await chatOk(user.client, question, cached);
    expect(json.gateway.cache_hit).toBe(true);
    expect(json).toMatchObject({
      object: 'chat.completion',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Namaste, world.' }, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    });
    const again = await streamed(user.client, question, cached);
    expect(again.content).toBe('Namaste, world.');
    expect(gatewayOf(again).cache_hit).toBe(true);
    expect(again.chunks.filter((chunk) => chunk.usage != null)).toEqual([]);
    expect(calls()).toBe(1);
  });

  test('tool calls survive the change from JSON to stream', async () => {
    const toolCalls = [{ id: 'call_1', name: 'f', arguments: '{"a":1}' }];
    const question = fresh({
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
    });
    gateway.vendors.openai.script(answer({ toolCalls }));
    await chatOk(user.client, question, cached);
    const replay = await streamed(user.client, question, cached);
    const parts = replay.chunks.flatMap(
      (chunk) => (chunk.choices?.[0]?.delta['tool_calls'] ?? []) as { function?: { arguments?: string } }[],
    );
    expect(parts.map((part) => part.function?.arguments ?? '').join('')).toBe('{"a":1}');
    expect(replay.chunks.map((chunk) => chunk.choices?.[0]?.finish_reason).filter(Boolean)).toEqual([
      'tool_calls',
    ]);
  });

  test.each(['hang', 'reset', 'fin', 'clean-end', 'error-event'] as const)(
    'a stream that broke off (%s) is not stored',
    async (how) => {
      const question = fresh();
      gateway.vendors.openai.script(tokensThen(2, how === 'hang' ? 'reset' : how));
      const reader = await user.client.stream(chatPath, chatBody({ ...question, stream: true }), cached);
      await reader.rest();
      expect((await chatOk(user.client, question, cached)).gateway.cache_hit).toBe(false);
    },
  );

  test('a failure is not stored', async () => {
    const question = fresh();
    gateway.vendors.always(failure(500));
    expect((await chat(user.client, question, cached)).status).toBe(502);
    gateway.vendors.clear();
    expect((await chatOk(user.client, question, cached)).gateway.cache_hit).toBe(false);
  });

  test('an override’s verbatim error is not stored', async () => {
    const question = fresh();
    const headers = { ...cached, 'x-gateway-override-model': 'openai:gpt-test' };
    gateway.vendors.openai.script(failure(400));
    expect((await chat(user.client, question, headers)).status).toBe(400);
    expect((await chatOk(user.client, question, headers)).gateway.cache_hit).toBe(false);
  });

  test('20 equal requests at once make one upstream call, and each has its own row', async () => {
    const owner = await registerWithKeys(gateway.url);
    const question = fresh();
    const held = gate();
    gateway.vendors.openai.script(heldBy(held, answer()));
    const lookUps = () => metric(gateway, 'gw_cache_operation_seconds_count');
    const before = await lookUps();
    const asking = Array.from({ length: 20 }, () => chatOk(owner.client, question, cached));
    // A request that looks only when the answer is there, but is not told so in time, would rightly ask again.
    await eventually(async () => (await lookUps()) === before + 20 || undefined);
    held.open();
    const bodies = await Promise.all(asking);
    expect(calls()).toBe(1);
    expect(bodies.filter((body) => body.gateway.cache_hit)).toHaveLength(19);
    expect(new Set(bodies.map((body) => body.gateway.request_id)).size).toBe(20);
    const rows = await logRowsOnceThere(owner.client, 20);
    expect(rows).toHaveLength(20);
    expect(rows.filter((row) => row.cost_usd !== '0.000000')).toHaveLength(1);
  });

  test('those who wait for a call that fails are not left hanging', async () => {
    const question = fresh();
    const held = gate();
    gateway.vendors.openai.script(heldBy(held, failure(500)));
    const asking = Array.from({ length: 5 }, () => chat(user.client, question, cached));
    await gateway.vendors.openai.received(0);
    held.open();
    for (const response of await Promise.all(asking)) expect(response.status).toBe(200);
  });

  test('those who wait for a client that leaves are answered all the same', async () => {
    const question = fresh();
    const held = gate();
    gateway.vendors.openai.script(heldBy(held, answer()));
    const controller = new AbortController();
    const leader = user.client.request('POST', chatPath, {
      body: chatBody(question),
      headers: cached,
      signal: controller.signal,
    });
    await gateway.vendors.openai.received(0);
    const others = Array.from({ length: 5 }, () => chatOk(user.client, question, cached));
    await user.client.get('/v1/keys');
    controller.abort();
    await expect(leader).rejects.toThrow();
    held.open();
    for (const body of await Promise.all(others))
      expect(body.choices[0]?.message['content']).toBe('Namaste, world.');
  });

  test('equal requests of two users at once are two calls', async () => {
    const other = await registerWithKeys(gateway.url);
    const question = fresh();
    const bodies = await Promise.all([
      chatOk(user.client, question, cached),
      chatOk(other.client, question, cached),
    ]);
    expect(bodies.map((body) => body.gateway.cache_hit)).toEqual([false, false]);
    expect(calls()).toBe(2);
  });
}

describe('with the cache in memory', () => keepsAnswers('memory'));

describe('with the cache in redis', whileLate, () => keepsAnswers('redis'));

describe('in Redis', whileLate, () => {
  const { server, direct: client } = useRedis();
  const gateway = useGateway(() => ({ redisUrl: server.url }));
  const user = useUser(gateway);
  beforeEach(async () => {
    await untilCached(gateway);
    await client.flushall();
  });

  test.each([
    [undefined, 3600],
    ['60', 60],
    ['10', 60],
    ['-1', 60],
    ['86400', 86_400],
    ['9999999', 86_400],
    ['7200', 7200],
  ])('an answer with the TTL header %s is stored for %d seconds', async (header, seconds) => {
    const headers = header === undefined ? cached : { ...cached, 'x-gateway-cache-ttl': header };
    await chatOk(user.client, fresh(), headers);
    const ttls = await eventually(async () => {
      const keys = await client.keys('gw:answer:*');
      return keys.length > 0 ? Promise.all(keys.map((key) => client.ttl(key))) : undefined;
    });
    expect(Math.max(...ttls)).toBeGreaterThan(seconds - 5);
    expect(Math.max(...ttls)).toBeLessThanOrEqual(seconds);
  });

  test.each(['', 'null', '{"v":1}', '{', 'x'.repeat(100_000)])(
    'a value that somebody else wrote is a miss, never an error: %s',
    async (rubbish) => {
      const question = fresh();
      await chatOk(user.client, question, cached);
      const keys = await eventually(async () => {
        const found = await client.keys('gw:answer:*');
        return found.length > 0 ? found : undefined;
      });
      for (const key of keys) await client.set(key, rubbish);
      expect((await chatOk(user.client, question, cached)).gateway.cache_hit).toBe(false);
    },
  );

  test('an answer holds no service key and no provider key', async () => {
    await chatOk(user.client, fresh(), cached);
    const keys = await eventually(async () => {
      const found = await client.keys('gw:answer:*');
      return found.length > 0 ? found : undefined;
    });
    const stored = await Promise.all(keys.map(async (key) => `${key} ${await client.get(key)}`));
    for (const secret of [user.key, providerSecret(user, 'openai')])
      expect(stored.join()).not.toContain(secret);
  });

  test('an answer is shared by two replicas', async () => {
    const second = await startReplicaForTest(gateway);
    const question = fresh();
    await chatOk(user.client, question, cached);
    const body = await chatOk(httpClient(second.url, user.key), question, cached);
    expect(body.gateway.cache_hit).toBe(true);
  });
});
