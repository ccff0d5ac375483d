/** What streams keep on their way to the cache: bounded for all together, and never in the way of an answer. */
import { describe, expect, test } from 'vitest';
import { smallAnswerBytes } from '../../src/chat/answer-budget.ts';
import { CompletionAccumulator } from '../../src/core/answer/completion-accumulator.ts';
import { doneFrame } from '../../src/core/answer/sse-frame.ts';
import { beginSlab, livingBytes } from '../harness/measure/memory.ts';
import { openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import { accountOf, callOf, FakeClient, heldKey, settled, World } from './story.ts';

const keys = [heldKey('openai')];
const finish = sse(openAiChunk('m', {}, 'stop'));

/** Begins a cached stream of its own prompt; the vendor has said this much of it. */
async function begin(world: World, prompt: string, said: string) {
  const client = new FakeClient();
  const messages = [{ role: 'user' as const, content: prompt }];
  const call = callOf({ request: { stream: true, messages }, options: { cacheTtlSeconds: 60 } });
  const index = world.transport.calls.length;
  const ended = world.answerChat(call, accountOf(keys), client, () => Promise.resolve(null));
  const upstream = await world.transport.call(index);
  upstream.stream(sse(openAiChunk('m', { role: 'assistant', content: 'a' })), said);
  await settled();
  return { client, upstream, ended };
}

const big = 'x'.repeat(100 * 1024);

describe.each([
  ['text', openAiChunk('m', { content: big })],
  ['reasoning', openAiChunk('m', { reasoning_content: big })],
  [
    'arguments of tool calls',
    openAiChunk('m', { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: big } }] }),
  ],
])('streams of much %s that stay open', (_name, chunk) => {
  test('are kept within the budget; beyond it they are answered, and not stored', async () => {
    const world = new World();
    const open = [];
    while (open.length < 12) open.push(await begin(world, `question ${open.length}`, sse(chunk)));
    expect(world.heldAnswerBytes).toBeGreaterThan(smallAnswerBytes);
    expect(world.answersFullness).toBeLessThanOrEqual(1);
    for (const { upstream } of open) upstream.data(finish, doneFrame).end();
    await Promise.all(open.map(({ ended }) => ended));
    await settled();
    for (const { client } of open) {
      expect(client.ended).toBe('clean');
      expect(client.text).toContain(big);
    }
    expect(world.store.entries.size).toBeGreaterThan(0);
    expect(world.store.entries.size).toBeLessThan(open.length);
    expect(world.heldAnswerBytes).toBe(0);
  });
});

test.each([
  ['is cut by its vendor', (one: Awaited<ReturnType<typeof begin>>) => one.upstream.fail('reset')],
  ['is left by its client', (one: Awaited<ReturnType<typeof begin>>) => one.client.leave()],
  [
    'turns out to be none that can be stored',
    ({ upstream }: Awaited<ReturnType<typeof begin>>) =>
      upstream.data(sse(openAiChunk('m', { content: 'b', audio: { id: 'x' } })), finish, doneFrame).end(),
  ],
])('a stream that %s gives its room back', async (_name, act) => {
  const world = new World();
  const one = await begin(world, 'question', sse(openAiChunk('m', { content: big })));
  expect(world.heldAnswerBytes).toBeGreaterThan(smallAnswerBytes);
  act(one);
  // Whoever left waits no longer; what the vendor still sends is read to its end.
  one.upstream.fail('reset');
  await one.ended.catch(() => undefined);
  await settled();
  expect(world.heldAnswerBytes).toBe(0);
});

const report = (extra: object): string => sse({ ...openAiChunk('m', {}), choices: [], ...extra });

test.each<[name: string, last: readonly string[], isStored: boolean]>([
  ['nothing', [], true],
  ['a list', [report({ citations: ['https://a.example'] })], false],
  ['an object', [report({ search: { found: 1 } })], false],
  ['an empty list', [report({ citations: [] })], true],
  ['a text', [report({ service_tier: 'flex' })], true],
  ['the timings', [report({ timings: { ms: 1 } })], true],
  ['a list that its client is not shown', [report({ citations: ['x'.repeat(5000)] })], true],
  ['a list, and then something else', [report({ citations: [1] }), report({ service_tier: 'flex' })], true],
  ['something else, and then a list', [report({ service_tier: 'flex' }), report({ citations: [1] })], false],
])(
  'a stream that ends with %s is stored as its client got it or not at all',
  async (_name, last, isStored) => {
    const world = new World();
    const { client, upstream, ended } = await begin(
      world,
      'question',
      sse(openAiChunk('m', { content: 'b' })),
    );
    upstream.data(finish, ...last, doneFrame).end();
    await ended;
    await settled();
    expect(client.ended).toBe('clean');
    expect(world.store.entries.size).toBe(isStored ? 1 : 0);
  },
);

/** Each field that is kept, as a vendor would fill it. */
const kept: readonly [string, (long: string) => Record<string, unknown>][] = [
  ['id', (long) => openAiChunk('m', { content: 'a' }, null, long)],
  ['model', (long) => openAiChunk(long, { content: 'a' })],
  ['system_fingerprint', (long) => ({ ...openAiChunk('m', { content: 'a' }), system_fingerprint: long })],
  ['service_tier', (long) => ({ ...openAiChunk('m', { content: 'a' }), service_tier: long })],
  ['finish_reason', (long) => openAiChunk('m', { content: 'a' }, long)],
  ['content', (long) => openAiChunk('m', { content: long })],
  ['refusal', (long) => openAiChunk('m', { refusal: long })],
  ['tool id', (long) => openAiChunk('m', { tool_calls: [{ index: 0, id: long, function: { name: 'f' } }] })],
  [
    'tool name',
    (long) => openAiChunk('m', { tool_calls: [{ index: 0, id: 'c', function: { name: long } }] }),
  ],
];

describe.each(kept)('a long %s', (_name, chunkOf) => {
  test('counts by what it takes of the memory', () => {
    const accumulator = new CompletionAccumulator(1024 * 1024);
    accumulator.push(Buffer.from(sse(chunkOf('x'.repeat(100_000)))));
    expect(accumulator.heldBytes).toBeGreaterThanOrEqual(200_000);
  });

  test('beyond the size of an entry leaves nothing behind', () => {
    const accumulator = new CompletionAccumulator(100_000);
    accumulator.push(Buffer.from(sse(chunkOf('x'.repeat(100_001)))));
    expect(accumulator.heldBytes).toBe(0);
    expect(accumulator.complete(null)).toBeNull();
  });
});

test('short texts of many choices count by what they take, whatever came between them', () => {
  const choices = 128;
  const accumulators = Array.from({ length: 4 }, () => new CompletionAccumulator(1024 * 1024));
  const before = livingBytes();
  for (const accumulator of accumulators) {
    for (let index = 0; index < choices; index += 1) {
      beginSlab();
      const chunk = openAiChunk('m', { content: 'a' });
      accumulator.push(
        Buffer.from(sse({ ...chunk, choices: [{ index, delta: { content: 'a' }, finish_reason: null }] })),
      );
    }
  }
  const kept = livingBytes() - before;
  const told = accumulators.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
  expect(told).toBeGreaterThan(0);
  // Maps and objects of each choice are not counted.
  expect(kept).toBeLessThan(told + 4 * choices * 2048);
});
