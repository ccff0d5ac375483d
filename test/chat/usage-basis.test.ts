import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ClientGoneError } from '../../src/chat/answer-chat.ts';
import { doneFrame } from '../../src/core/answer/sse-frame.ts';
import type { Usage } from '../../src/core/answer/usage.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { namedSse } from '../harness/vendors/anthropic-wire.ts';
import { defaultOpenAiUsage, openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import { readExposition, sumOf } from '../telemetry/exposition.ts';
import type { CallParts, FakeUpstream, SettledRow } from './story.ts';
import { accountOf, balancedKeys, callOf, FakeClient, settled, testTables, World } from './story.ts';
import { expectNobodyWaits } from './watched-dues.ts';

/** What a row knows of its tokens when the answer was cut, or its client left: what was stated, nothing else. */

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
});

afterEach(() => {
  expectNobodyWaits();
  vi.useRealTimers();
});

type Vendor = 'openai' | 'anthropic';

interface Story {
  readonly world: World;
  readonly client: FakeClient;
  readonly upstream: FakeUpstream;
  end(): Promise<unknown>;
}

async function begin(vendor: Vendor): Promise<Story> {
  const world = new World();
  const client = new FakeClient();
  const model = vendor === 'openai' ? 'gpt-test' : 'claude-test';
  const parts: CallParts = {
    request: { stream: true },
    options: { override: { provider: vendor, selector: null, model } },
  };
  const running = world
    .answerChat(callOf(parts), accountOf(balancedKeys), client, () => Promise.resolve(null))
    .catch((error: unknown) => error);
  return { world, client, upstream: await world.transport.call(0), end: () => running };
}

const start = namedSse('message_start', {
  message: {
    id: 'msg_1',
    model: 'claude-test',
    usage: { input_tokens: 25, cache_read_input_tokens: 10, output_tokens: 1 },
  },
});
const text = namedSse('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hi' } });
const stop = (usage: object): string =>
  namedSse('message_delta', { delta: { stop_reason: 'end_turn' }, usage });
const running = namedSse('message_delta', { delta: { stop_reason: null }, usage: { output_tokens: 4 } });
const messageStop = namedSse('message_stop', {});

const token = sse(openAiChunk('gpt-test', { role: 'assistant', content: 'Hel' }));
const counted = (content: string, usage: object): string =>
  sse({ ...openAiChunk('gpt-test', { content }), usage });
const finish = sse(openAiChunk('gpt-test', {}, 'stop'));
const usageChunk = sse({ ...openAiChunk('gpt-test', {}), choices: [], usage: defaultOpenAiUsage });
const done = sse('[DONE]');

const nothing: Partial<Usage> = { basis: 'none', inputTokens: 0, outputTokens: 0 };
/** 25 tokens at 2 and 10 cached ones at 0.2 micro-dollars; the placeholder would add 10. */
const inputSide: Partial<Usage> = {
  basis: 'partial',
  inputTokens: 35,
  cachedInputTokens: 10,
  outputTokens: 0,
};
const inputSideCost = 52n;

interface Cut {
  readonly name: string;
  readonly vendor: Vendor;
  readonly events: readonly string[];
  readonly usage: Partial<Usage>;
  readonly cost: bigint;
  readonly unpriced: 'no_usage' | 'partial_usage' | null;
}

const cuts: readonly Cut[] = [
  {
    name: 'anthropic after its first text',
    vendor: 'anthropic',
    events: [start, text],
    usage: inputSide,
    cost: inputSideCost,
    unpriced: 'partial_usage',
  },
  {
    name: 'anthropic with counts that run along',
    vendor: 'anthropic',
    events: [start, text, running],
    usage: { ...inputSide, outputTokens: 4 },
    cost: 92n,
    unpriced: 'partial_usage',
  },
  {
    name: 'anthropic without any counts',
    vendor: 'anthropic',
    events: [text],
    usage: nothing,
    cost: 0n,
    unpriced: 'no_usage',
  },
  {
    name: 'openai before its usage',
    vendor: 'openai',
    events: [token],
    usage: nothing,
    cost: 0n,
    unpriced: 'no_usage',
  },
  {
    name: 'openai with counts that run along',
    vendor: 'openai',
    events: [token, counted('lo', { prompt_tokens: 11, completion_tokens: 2 })],
    usage: { basis: 'partial', inputTokens: 11, outputTokens: 2 },
    cost: 21n,
    unpriced: 'partial_usage',
  },
  {
    name: 'openai behind its usage',
    vendor: 'openai',
    events: [token, finish, usageChunk],
    usage: { basis: 'complete', inputTokens: 11, outputTokens: 7 },
    cost: 46n,
    unpriced: null,
  },
];

/** Row, telemetry and metrics tell the same. */
async function expectTold(
  story: Story,
  expected: Pick<Cut, 'usage' | 'cost' | 'unpriced'>,
): Promise<SettledRow> {
  const { world } = story;
  expect(world.rows).toHaveLength(1);
  const row = world.rows[0] as SettledRow;
  expect(row.usage).toMatchObject(expected.usage);
  expect(row.costMicroUsd).toBe(expected.cost);
  expect(world.telemetry.attempts).toHaveLength(1);
  expect(world.telemetry.attempts[0]?.usage).toEqual(row.usage);
  const metrics = new Metrics();
  for (const record of world.telemetry.attempts) metrics.attempts.attemptEnded(callOf(), record);
  metrics.chat.settled(callOf(), row);
  const exposition = readExposition(await metrics.registry.metrics());
  expect(sumOf(exposition, 'gw_cost_microusd_total')).toBe(Number(expected.cost));
  expect(sumOf(exposition, 'gw_unpriced_responses_total')).toBe(expected.unpriced === null ? 0 : 1);
  if (expected.unpriced !== null) {
    expect(sumOf(exposition, 'gw_unpriced_responses_total', { reason: expected.unpriced })).toBe(1);
  }
  return row;
}

describe('a stream that is cut', () => {
  test.each(cuts)('$name: by its vendor', async (given) => {
    const story = await begin(given.vendor);
    story.upstream.stream(...given.events).fail('reset');
    await story.end();
    expect((await expectTold(story, given)).status).toBe('incomplete');
    expect(story.client.text).not.toContain('"gateway"');
  });

  test.each(cuts.filter(({ events }) => !events.includes(finish)))(
    '$name: by a client that leaves, and the vendor is left at once',
    async (given) => {
      const story = await begin(given.vendor);
      story.upstream.stream(...given.events);
      await settled();
      story.client.leave();
      expect(story.upstream.aborted).toBe(true);
      await story.end();
      expect((await expectTold(story, given)).status).toBe('client_closed');
    },
  );

  test('by a client that leaves before the first token has the input that was stated', async () => {
    const story = await begin('anthropic');
    story.upstream.stream(start);
    await settled();
    story.client.leave();
    expect(await story.end()).toBeInstanceOf(ClientGoneError);
    const told = { usage: inputSide, cost: inputSideCost, unpriced: 'partial_usage' } as const;
    expect((await expectTold(story, told)).status).toBe('client_closed');
  });
});

test.each([true, false])(
  'a prompt whose client left is known as given up where it was sent: %s',
  async (isSent) => {
    const story = await begin('anthropic');
    story.upstream.isSent = isSent;
    story.client.leave();
    await story.end();
    const [row] = story.world.rows as readonly SettledRow[];
    expect(row?.status).toBe('client_closed');
    expect((row?.givenUpBytes ?? 0) > 0).toBe(isSent);
  },
);

test.each([
  ['left by its client', 'client_closed', 30_000, (story: Story) => story.client.leave()],
  ['cut by its vendor', 'incomplete', 30_000, (story: Story) => story.upstream.fail('reset')],
  [
    'whole, though its vendor counts nothing',
    'success',
    0,
    (story: Story) => story.upstream.data(sse(openAiChunk('gpt-test', {}, 'stop')), doneFrame).end(),
  ],
] as const)(
  'the wait for the first token of a stream is known where it is %s',
  async (_how, status, unseenMs, finish) => {
    const story = await begin('openai');
    vi.advanceTimersByTime(30_000);
    story.upstream.stream(token);
    await settled();
    finish(story);
    await story.end();
    const [row] = story.world.rows as readonly SettledRow[];
    expect([row?.status, row?.cutAnswer?.unseenMs]).toEqual([status, unseenMs]);
  },
);

describe('half an answer, which is none', () => {
  const openAiHalf = (usage?: object) => ({
    id: 'a',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-test',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hel' }, finish_reason: null }],
    ...(usage !== undefined && { usage }),
  });
  const anthropicHalf = {
    id: 'msg_1',
    model: 'claude-test',
    content: [{ type: 'text', text: 'Hi' }],
    stop_reason: null,
    usage: { input_tokens: 25, cache_read_input_tokens: 10, output_tokens: 4 },
  };
  test.each<[name: string, vendor: Vendor, answer: object, told: Pick<Cut, 'usage' | 'cost' | 'unpriced'>]>([
    [
      'of OpenAI, with counts',
      'openai',
      openAiHalf({ prompt_tokens: 11, completion_tokens: 2, total_tokens: 13 }),
      {
        usage: { basis: 'partial', inputTokens: 11, outputTokens: 2 },
        cost: 21n,
        unpriced: 'partial_usage',
      },
    ],
    [
      'of Anthropic, with counts',
      'anthropic',
      anthropicHalf,
      { usage: { ...inputSide, outputTokens: 4 }, cost: 92n, unpriced: 'partial_usage' },
    ],
    [
      'of OpenAI, whose call is none',
      'openai',
      {
        ...openAiHalf({ prompt_tokens: 11, completion_tokens: 2, total_tokens: 13 }),
        choices: [{ index: 0, message: { role: 'assistant', tool_calls: 7 }, finish_reason: 'tool_calls' }],
      },
      { usage: { basis: 'partial', inputTokens: 11, outputTokens: 2 }, cost: 21n, unpriced: 'partial_usage' },
    ],
    [
      'of Anthropic, that ends for calls which are not there',
      'anthropic',
      { ...anthropicHalf, stop_reason: 'tool_use' },
      { usage: { ...inputSide, outputTokens: 4 }, cost: 92n, unpriced: 'partial_usage' },
    ],
  ])('%s, has a row with what was stated', async (_name, vendor, answer, told) => {
    const story = await begin(vendor);
    story.upstream.reply(200, answer);
    expect(await story.end()).toMatchObject({ status: 502 });
    expect((await expectTold(story, told)).status).toBe('error');
  });

  test.each([undefined, { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }])(
    'without counts (%j) has none on its row',
    async (usage) => {
      const story = await begin('openai');
      story.upstream.reply(200, openAiHalf(usage));
      await story.end();
      expect(story.world.rows).toMatchObject([{ usage: nothing, costMicroUsd: 0n, status: 'error' }]);
    },
  );

  function tierStory() {
    const world = new World();
    const client = new FakeClient();
    const end = world
      .answerChat(callOf({}), accountOf(balancedKeys), client, () => Promise.resolve(null))
      .catch((error: unknown) => error);
    return { world, client, end };
  }
  const half = openAiHalf({ prompt_tokens: 11, completion_tokens: 2, total_tokens: 13 });
  const billed = {
    provider: 'openai',
    usage: { basis: 'partial', inputTokens: 11, outputTokens: 2 },
    costMicroUsd: 21n,
  };

  test('has a row with what was stated though others were asked in vain after it', async () => {
    const { world, end } = tierStory();
    (await world.transport.call(0)).reply(200, half);
    for (const index of [1, 2]) (await world.transport.call(index)).reply(500, {});
    expect(await end).toMatchObject({ status: 502 });
    expect(world.rows).toMatchObject([{ ...billed, status: 'error' }]);
    expect(world.rows[0]?.attempts).toHaveLength(3);
  });

  test('has a row with what was stated though its client left while another was asked', async () => {
    const { world, client, end } = tierStory();
    (await world.transport.call(0)).reply(200, half);
    await world.transport.call(1);
    client.controller.abort('client-gone');
    await end;
    expect(world.rows).toMatchObject([{ ...billed, status: 'client_closed' }]);
  });

  const busy = namedSse('error', { error: { type: 'overloaded_error', message: 'busy' } });
  const endless = `data: ${'x'.repeat(testTables().document.limits.event_bytes)}`;
  test.each<[name: string, act: (upstream: FakeUpstream) => unknown]>([
    ['an error event', (upstream) => upstream.data(busy).end()],
    ['a reset', (upstream) => upstream.fail('reset')],
    ['silence', () => vi.advanceTimersByTimeAsync(120_000)],
    ['an event that does not end', (upstream) => upstream.data(endless)],
  ])(
    'before the first token of a stream has a row with the input that was stated: %s',
    async (_name, act) => {
      const story = await begin('anthropic');
      story.upstream.stream(start);
      await act(story.upstream);
      expect(await story.end()).toMatchObject({ status: 502 });
      const told = { usage: inputSide, cost: inputSideCost, unpriced: 'partial_usage' } as const;
      expect((await expectTold(story, told)).status).toBe('error');
    },
  );
});

test.each<[name: string, vendor: Vendor, events: readonly string[], usage: Partial<Usage>, cost: bigint]>([
  [
    'a final count',
    'anthropic',
    [start, text, stop({ output_tokens: 3 }), messageStop],
    { ...inputSide, basis: 'complete', outputTokens: 3 },
    82n,
  ],
  ['no final count', 'anthropic', [start, text, stop({}), messageStop], inputSide, inputSideCost],
])('a whole stream with %s is priced by what was stated', async (_name, vendor, events, usage, cost) => {
  const story = await begin(vendor);
  story.upstream.stream(...events).end();
  await story.end();
  const unpriced = usage.basis === 'complete' ? null : 'partial_usage';
  expect((await expectTold(story, { usage, cost, unpriced })).status).toBe('success');
  expect(story.client.text).toContain(`"cost_usd":"0.0000${cost}"`);
});

describe('a client that leaves behind the finish chunk', () => {
  const whole = {
    usage: { basis: 'complete', inputTokens: 11, outputTokens: 7 },
    cost: 46n,
    unpriced: null,
  } as const;

  async function left(events: readonly string[] = [token, finish]): Promise<Story> {
    const story = await begin('openai');
    story.upstream.stream(...events);
    await settled();
    story.client.leave();
    expect(story.upstream.aborted).toBe(false);
    return story;
  }

  test('has its usage on the row', async () => {
    const story = await left();
    await vi.advanceTimersByTimeAsync(1_500);
    story.upstream.data(usageChunk, done).end();
    await story.end();
    expect((await expectTold(story, whole)).status).toBe('client_closed');
    expect(story.world.telemetry.streamEnds).toEqual(['client_abort']);
  });

  test('has it when the vendor ends without a word more', async () => {
    const story = await left([token, finish, usageChunk]);
    story.upstream.end();
    await story.end();
    expect((await expectTold(story, whole)).status).toBe('client_closed');
  });

  test.each<[name: string, act: (upstream: FakeUpstream) => unknown]>([
    ['nothing for two seconds', () => vi.advanceTimersByTimeAsync(2_000)],
    ['a reset', (upstream) => upstream.fail('reset')],
    ['an error event', (upstream) => upstream.data(sse({ error: { message: 'late' } }))],
  ])('and %s has none, and is still only a client that left', async (_name, act) => {
    const story = await left();
    await act(story.upstream);
    await story.end();
    const told = { usage: nothing, cost: 0n, unpriced: 'no_usage' } as const;
    expect((await expectTold(story, told)).status).toBe('client_closed');
  });

  test('holds its vendor no longer than two seconds, however much it sends', async () => {
    const story = await left();
    for (let second = 0; second < 4; second += 1) {
      story.upstream.data(': still here\n\n');
      await vi.advanceTimersByTimeAsync(499);
    }
    expect(story.upstream.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(4);
    expect(story.upstream.aborted).toBe(true);
    await story.end();
  });

  test('while it was reading too slowly has its usage all the same', async () => {
    const story = await begin('openai');
    story.client.ready = false;
    story.upstream.stream(token, finish);
    await settled();
    expect(story.upstream.paused).toBe(true);
    story.client.leave();
    story.client.drain();
    expect(story.upstream.paused).toBe(false);
    story.client.ready = true;
    story.upstream.data(usageChunk, done).end();
    await story.end();
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await expectTold(story, whole)).status).toBe('client_closed');
  });
});
