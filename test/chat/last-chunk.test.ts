import { expect, test } from 'vitest';
import { defaultOpenAiUsage, openAiAnswer, openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import type { CallParts, FakeUpstream } from './story.ts';
import { accountOf, callOf, FakeClient, heldKey, settled, World } from './story.ts';

/** The one chunk in front of `[DONE]`: the block, and with it what a client with `include_usage` asked for. */

const timings = { prompt_ms: 1.5, predicted_per_second: 40 };
const asking: CallParts = { request: { stream: true, stream_options: { include_usage: true } } };
const silent: CallParts = { request: { stream: true } };

async function lastChunkOf(
  parts: CallParts,
  act: (upstream: FakeUpstream) => unknown,
  world = new World(),
): Promise<{ last: Record<string, unknown>; usages: number; blocks: number }> {
  const client = new FakeClient();
  const before = world.transport.calls.length;
  const running = world.answerChat(callOf(parts), accountOf([heldKey('openai')]), client, () =>
    Promise.resolve(null),
  );
  await settled();
  const upstream = world.transport.calls[before];
  if (upstream !== undefined) act(upstream);
  await running;
  const last = client.events.at(-2) as Record<string, unknown>;
  return {
    last,
    usages: client.events.filter((event) => event !== '[DONE]' && event['usage'] != null).length,
    blocks: client.text.split('"gateway"').length - 1,
  };
}

const token = sse({ ...openAiChunk('m', { role: 'assistant', content: 'Hi' }), system_fingerprint: 'fp_1' });
const finish = sse(openAiChunk('m', {}, 'stop'));
const report = (extra: object): string =>
  sse({ ...openAiChunk('m', {}), choices: [], usage: defaultOpenAiUsage, ...extra });
const done = sse('[DONE]');
const block = { choices: [{ index: 0, delta: { gateway: { provider: 'openai' } }, finish_reason: null }] };

const cases: readonly (readonly [name: string, events: readonly string[], expected: object])[] = [
  ['usage', [token, finish, report({}), done], { usage: defaultOpenAiUsage, system_fingerprint: 'fp_1' }],
  ['timings too', [token, finish, report({ timings }), done], { timings, system_fingerprint: 'fp_1' }],
  [
    'the fingerprint of that chunk',
    [token, finish, report({ system_fingerprint: 'fp_2' }), done],
    { system_fingerprint: 'fp_2' },
  ],
  ['zeros where there is no usage', [token, finish, done], { usage: { total_tokens: 0 } }],
];

test.each(cases)('carries %s to those who asked, once', async (_name, events, expected) => {
  const seen = await lastChunkOf(asking, (upstream) => upstream.stream(...events).end());
  expect(seen.last).toMatchObject({ ...block, ...expected });
  expect([seen.usages, seen.blocks]).toEqual([1, 1]);
});

test('carries nothing but the block to others', async () => {
  const seen = await lastChunkOf(silent, (upstream) =>
    upstream.stream(token, finish, report({ timings }), done).end(),
  );
  expect(Object.keys(seen.last)).toEqual(['id', 'object', 'created', 'model', 'choices']);
  expect([seen.usages, seen.blocks]).toEqual([0, 1]);
});

test.each<[name: string, extra: object]>([
  ['what has a place of its own', { gateway: { provider: 'evil' }, id: 'other', error: null, choices: [] }],
  ['more than anybody says', { notes: 'x'.repeat(5000) }],
])('carries nothing of a vendor that says %s', async (_name, extra) => {
  const seen = await lastChunkOf(asking, (upstream) =>
    upstream.stream(token, finish, report(extra), done).end(),
  );
  expect(seen.last).toMatchObject({ ...block, id: 'chatcmpl-fake-1', system_fingerprint: 'fp_1' });
  expect(seen.last).not.toHaveProperty('notes');
  expect(seen.blocks).toBe(1);
});

test('is the same for a JSON answer that is streamed, and for a stored one', async () => {
  const world = new World();
  const cached: CallParts = { ...asking, options: { cacheTtlSeconds: 60 } };
  const body = { ...openAiAnswer('m'), timings };
  const streamed = await lastChunkOf(cached, (upstream) => upstream.reply(200, body), world);
  expect(streamed.last).toMatchObject({
    ...block,
    usage: defaultOpenAiUsage,
    timings,
    system_fingerprint: 'fp_fake',
  });
  await settled();
  const stored = await lastChunkOf(cached, () => undefined, world);
  expect(world.transport.calls).toHaveLength(1);
  expect(stored.last).toMatchObject({ usage: defaultOpenAiUsage, timings, system_fingerprint: 'fp_fake' });
  expect([streamed.usages, streamed.blocks, stored.usages, stored.blocks]).toEqual([1, 1, 1, 1]);
});
