import { expect, test } from 'vitest';
import { defaultOpenAiUsage, openAiAnswer, openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import type { CallParts, FakeUpstream } from './story.ts';
import { accountOf, callOf, FakeClient, heldKey, settled, World } from './story.ts';

/** The one chunk in front of `[DONE]`: the block, what the vendor said of its answer, and usage for who asked for it. */

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

const plainToken = sse(openAiChunk('m', { role: 'assistant', content: 'Hi' }));
const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

const cases: readonly (readonly [name: string, events: readonly string[], usage: object, extras: object])[] =
  [
    [
      'the fingerprint of the stream',
      [token, finish, report({}), done],
      defaultOpenAiUsage,
      { system_fingerprint: 'fp_1' },
    ],
    [
      'timings too',
      [token, finish, report({ timings }), done],
      defaultOpenAiUsage,
      { timings, system_fingerprint: 'fp_1' },
    ],
    [
      'the fingerprint of the chunk of the usage',
      [token, finish, report({ system_fingerprint: 'fp_2' }), done],
      defaultOpenAiUsage,
      { system_fingerprint: 'fp_2' },
    ],
    [
      'timings without a fingerprint',
      [plainToken, finish, report({ timings }), done],
      defaultOpenAiUsage,
      { timings },
    ],
    ['the fingerprint where there is no usage', [token, finish, done], zeros, { system_fingerprint: 'fp_1' }],
    ['nothing of a vendor that says nothing', [plainToken, finish, done], zeros, {}],
  ];
const bare = {
  id: expect.any(String),
  object: 'chat.completion.chunk',
  created: expect.any(Number),
  model: 'm',
};
const chunkWith = (rest: object): object => ({
  ...bare,
  choices: [
    { index: 0, delta: { gateway: expect.objectContaining({ provider: 'openai' }) }, finish_reason: null },
  ],
  ...rest,
});

test.each(cases)('carries %s, once, and usage for those who asked', async (_name, events, usage, extras) => {
  const asked = await lastChunkOf(asking, (upstream) => upstream.stream(...events).end());
  expect(asked.last).toEqual(chunkWith({ ...extras, usage }));
  expect([asked.usages, asked.blocks]).toEqual([1, 1]);
  const others = await lastChunkOf(silent, (upstream) => upstream.stream(...events).end());
  expect(others.last).toEqual(chunkWith(extras));
  expect([others.usages, others.blocks]).toEqual([0, 1]);
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

test.each<[who: string, parts: CallParts, usage: object]>([
  ['those who asked', asking, { usage: defaultOpenAiUsage }],
  ['others', silent, {}],
])(
  'is the same for a JSON answer that is streamed, and for a stored one, to %s',
  async (_who, parts, usage) => {
    const world = new World();
    const cached: CallParts = { ...parts, options: { cacheTtlSeconds: 60 } };
    const body = { ...openAiAnswer('m'), timings };
    const said = { timings, system_fingerprint: 'fp_fake', ...usage };
    const streamed = await lastChunkOf(cached, (upstream) => upstream.reply(200, body), world);
    expect(streamed.last).toEqual(chunkWith(said));
    await settled();
    const stored = await lastChunkOf(cached, () => undefined, world);
    expect(world.transport.calls).toHaveLength(1);
    const { choices: _block, ...rest } = stored.last;
    expect(rest).toEqual({ ...bare, ...said });
    const usages = 'usage' in usage ? 1 : 0;
    expect([streamed.usages, streamed.blocks, stored.usages, stored.blocks]).toEqual([usages, 1, usages, 1]);
  },
);
