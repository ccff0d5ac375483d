import fc from 'fast-check';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import type { AnswerMessage, ChatCompletion, ToolCall } from '../../../src/core/answer/chat-completion.ts';
import { CompletionAccumulator } from '../../../src/core/answer/completion-accumulator.ts';
import { chunksFromCompletion } from '../../../src/core/answer/completion-chunks.ts';
import type { GatewayMetadata } from '../../../src/core/answer/gateway-metadata.ts';
import { gatewayChunk } from '../../../src/core/answer/gateway-metadata.ts';
import { doneFrame, frame, frameStart } from '../../../src/core/answer/sse-frame.ts';

const oneMiB = 1024 * 1024;

const completion = (
  messages: readonly AnswerMessage[],
  extra: Record<string, unknown> = {},
): ChatCompletion => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'm-1',
  choices: messages.map((message, index) => ({
    index,
    message,
    finish_reason: message.tool_calls === undefined ? 'stop' : 'tool_calls',
  })),
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
  ...extra,
});

const toolCall = (id: string, name: string, text: string): ToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: text },
});

function accumulate(parts: readonly (Buffer | string)[], maxBytes = oneMiB): CompletionAccumulator {
  const accumulator = new CompletionAccumulator(maxBytes);
  for (const part of parts) accumulator.push(Buffer.from(part));
  return accumulator;
}

const event = (body: Record<string, unknown>): string =>
  frame(JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', ...body }));
const delta = (fields: Record<string, unknown>, finish: string | null = null, index = 0): string =>
  event({ choices: [{ index, delta: fields, finish_reason: finish }] });

const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const messageArbitrary: fc.Arbitrary<AnswerMessage> = fc.record(
  {
    role: fc.constant('assistant' as const),
    content: fc.option(text),
    refusal: text,
    reasoning_content: text,
    tool_calls: fc.array(
      fc
        .record({ id: text, name: text, text })
        .map((call) => toolCall(`i${call.id}`, `n${call.name}`, call.text)),
      { minLength: 1, maxLength: 4 },
    ),
  },
  { requiredKeys: ['role', 'content'] },
);
const completionArbitrary = fc
  .tuple(
    fc.array(messageArbitrary, { minLength: 1, maxLength: 4 }),
    fc.dictionary(fc.constant('service_tier'), text),
  )
  .map(([messages, extra]) => completion(messages, extra));

test('an answer replayed and put together again is the same answer', () => {
  fc.assert(
    fc.property(completionArbitrary, (original) => {
      const events = [...chunksFromCompletion(original)];
      expect(accumulate(events).complete(original.usage)).toEqual(original);
    }),
  );
});

test('how the bytes are cut makes no difference', () => {
  fc.assert(
    fc.property(completionArbitrary, fc.array(fc.nat(2000), { maxLength: 8 }), (original, cuts) => {
      const bytes = Buffer.concat([...chunksFromCompletion(original)]);
      const places = [0, ...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length];
      const parts = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
      expect(accumulate(parts).complete(original.usage)).toEqual(original);
    }),
  );
});

test('a long text is replayed in pieces that keep surrogate pairs together', () => {
  const long = `${'a'.repeat(8191)}😀${'b'.repeat(20_000)}`;
  const events = [...chunksFromCompletion(completion([{ role: 'assistant', content: long }]))];
  expect(Math.max(...events.map((one) => one.length))).toBeLessThan(32 * 1024);
  expect(accumulate(events).complete(null)?.choices[0]?.message.content).toBe(long);
});

test('replays role, text, tool calls and finish in this order', () => {
  const original = completion([
    {
      role: 'assistant',
      content: 'Hi',
      tool_calls: [toolCall('a', 'f', '{}'), toolCall('b', 'g', '{"x":1}')],
    },
  ]);
  const bodies = [...chunksFromCompletion(original)].map((one) =>
    JSON.parse(one.toString().slice(frameStart.length)),
  );
  expect(bodies.map((body) => body.choices[0]?.delta)).toEqual([
    { role: 'assistant' },
    { content: 'Hi' },
    { tool_calls: [{ index: 0, ...toolCall('a', 'f', '{}') }] },
    { tool_calls: [{ index: 1, ...toolCall('b', 'g', '{"x":1}') }] },
    {},
  ]);
  expect(bodies.map((body) => body.choices[0]?.finish_reason ?? null)).toEqual([
    null,
    null,
    null,
    null,
    'tool_calls',
  ]);
  for (const body of bodies) {
    expect(body).toMatchObject({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model: 'm-1' });
  }
});

test('other members of a stored message and choice are replayed too', () => {
  const original = completion([{ role: 'assistant', content: 'x', annotations: [{ type: 'url' }] }]);
  const withLogprobs = {
    ...original,
    choices: original.choices.map((choice) => ({ ...choice, logprobs: { content: [] } })),
  };
  const [event] = chunksFromCompletion(withLogprobs);
  const first = event?.toString() ?? '';
  expect(first).toContain('"annotations":[{"type":"url"}]');
  expect(first).toContain('"logprobs":{"content":[]}');
});

describe('puts together', () => {
  test('interleaved choices and tool call fragments', () => {
    const answer = accumulate([
      delta({
        role: 'assistant',
        content: null,
        tool_calls: [{ index: 1, id: 'b', type: 'function', function: { name: 'g', arguments: '' } }],
      }),
      delta({ content: 'se' }, null, 1),
      delta({
        tool_calls: [
          { index: 1, function: { arguments: '{"y"' } },
          { index: 0, id: 'a', function: { name: 'f', arguments: '{}' } },
        ],
      }),
      delta({ content: 'cond' }, 'stop', 1),
      delta({ tool_calls: [{ index: 1, id: 'b', function: { name: 'g', arguments: ':2}' } }] }),
      delta({}, 'tool_calls'),
      event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }),
      event({ choices: [{ index: 0, delta: { gateway: { provider: 'openai' } }, finish_reason: null }] }),
      doneFrame,
    ]).complete(null);
    expect(answer).toEqual({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            tool_calls: [toolCall('a', 'f', '{}'), toolCall('b', 'g', '{"y":2}')],
          },
          finish_reason: 'tool_calls',
        },
        { index: 1, message: { role: 'assistant', content: 'second' }, finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    });
  });

  test('events with CRLF, comments and vendor remarks', () => {
    const answer = accumulate([
      ': keep-alive\n\n',
      delta({ role: 'assistant', content: 'a', token_id: 7 }).replaceAll('\n', '\r\n'),
      delta({ content: '' }, 'length'),
    ]).complete(null);
    expect(answer?.choices[0]).toEqual({
      index: 0,
      message: { role: 'assistant', content: 'a' },
      finish_reason: 'length',
    });
  });
});

describe('gives nothing for', () => {
  const good = delta({ role: 'assistant', content: 'hello' });
  const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
  test.each<[string, string[], number?]>([
    ['an empty stream', []],
    ['a stream of usage only', [event({ choices: [] })]],
    ['a stream without a finish', [good]],
    ['a second choice without a finish', [good, delta({}, 'stop'), delta({ content: 'x' }, null, 1)]],
    ['half an event at the end', [good, delta({}, 'stop'), `${frameStart}{"id"`]],
    ['an error event', [good, frame('{"error":{"message":"x"}}'), delta({}, 'stop')]],
    ['an event that is not JSON', [good, frame('{oops'), delta({}, 'stop')]],
    ['an event that is no object', [good, frame('7'), delta({}, 'stop')]],
    ['choices that are no list', [good, event({ choices: {} }), delta({}, 'stop')]],
    ['a choice that is no object', [good, event({ choices: [null] }), delta({}, 'stop')]],
    ['a choice with a mad index', [good, delta({}, 'stop', 1e9)]],
    ['a tool call with a mad index', [delta({ tool_calls: [{ index: -1, id: 'a' }] }), delta({}, 'stop')]],
    ['a tool call without an index', [delta({ tool_calls: [{ id: 'a' }] }), delta({}, 'stop')]],
    ['a tool call without a name', [delta({ tool_calls: [{ index: 0, id: 'a' }] }), delta({}, 'stop')]],
    ['audio', [delta({ audio: { data: 'x' } }), delta({}, 'stop')]],
    ['citations beside a text', [delta({ annotations: [{ type: 'url_citation' }] }), delta({}, 'stop')]],
    ['citations beside the choices', [good, event({ choices: [], citations: ['https://a.example'] })]],
    [
      'a signature of a call',
      [
        delta({ tool_calls: [{ ...call, extra_content: { google: { thought_signature: 's' } } }] }),
        delta({}, 'stop'),
      ],
    ],
    [
      'a list beside the arguments of a call',
      [delta({ tool_calls: [{ ...call, function: { ...call.function, parts: [1] } }] }), delta({}, 'stop')],
    ],
    [
      'what a filter says of a choice',
      [
        good,
        event({
          choices: [{ index: 0, delta: {}, content_filter_results: { hate: {} }, finish_reason: 'stop' }],
        }),
      ],
    ],
    ['content that is no text', [delta({ content: { a: 1 } }), delta({}, 'stop')]],
    [
      'token probabilities',
      [event({ choices: [{ index: 0, delta: {}, logprobs: { content: [] }, finish_reason: 'stop' }] })],
    ],
    ['more text than the limit', [good, good, delta({}, 'stop')], 9],
    [
      'text that is longer than the limit as it is stored',
      [delta({ content: '\u0001'.repeat(200) }), delta({}, 'stop')],
      1000,
    ],
    ['half characters that are', [delta({ content: '\ud800'.repeat(200) }), delta({}, 'stop')], 1000],
    [
      'more arguments than the limit',
      [
        delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: 'x'.repeat(20) } }] }),
        delta({}, 'stop'),
      ],
      9,
    ],
    ['an event longer than the limit', [good, frameStart + 'x'.repeat(2000)], 1000],
    [
      'chunks without id',
      [frame('{"created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')],
    ],
  ])('%s', (_what, parts, maxBytes) => {
    expect(accumulate(parts, maxBytes).complete(null)).toBeNull();
  });
});

describe('what is replayed has our places, whatever the answer has in theirs', () => {
  const answered = (extra: object, calls: readonly object[]): ChatCompletion => ({
    ...completion([{ role: 'assistant', content: null, tool_calls: calls as readonly ToolCall[] }]),
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: null, tool_calls: calls as readonly ToolCall[] },
        finish_reason: 'tool_calls',
        ...extra,
      },
    ],
  });
  const calls = [toolCall('a', 'f', '{}'), toolCall('b', 'g', '{}')];
  const plain = [...chunksFromCompletion(answered({}, calls))].join('');

  test.each([-1, 0, null, '1', 7])('calls that all have the index %j', (index) => {
    const numbered = calls.map((one) => ({ ...one, index }));

    const chunks = [...chunksFromCompletion(answered({}, numbered))];

    const fragments = chunks.flatMap((chunk) => {
      const read = JSON.parse(chunk.toString().slice('data: '.length));
      return read.choices[0].delta.tool_calls ?? [];
    });
    expect(fragments.map((one) => [one.index, one.id])).toEqual([
      [0, 'a'],
      [1, 'b'],
    ]);
    expect(accumulate(chunks).complete(null)?.choices[0]?.message.tool_calls).toEqual(calls);
  });

  test.each([null, { role: 'assistant', content: 'theirs' }, 'x'])('a choice with the delta %j', (theirs) => {
    expect([...chunksFromCompletion(answered({ delta: theirs }, calls))].join('')).toBe(plain);
  });
});

test('never throws on hostile bytes', () => {
  const hostile = fc.oneof(
    fc.jsonValue().map((value) => frame(JSON.stringify(value))),
    fc.string(),
  );
  const inside = fc
    .jsonValue()
    .map((value) => event({ choices: [{ index: 0, delta: value, finish_reason: 'stop' }] }));
  fc.assert(
    fc.property(fc.array(fc.oneof(hostile, inside)), (parts) => {
      accumulate(parts).complete(null);
    }),
  );
});

test("the OpenAI SDK's accumulator accepts a replayed answer", async () => {
  const original = completion([
    { role: 'assistant', content: 'Hello 😀', refusal: null },
    {
      role: 'assistant',
      content: null,
      refusal: null,
      tool_calls: [toolCall('a', 'f', '{"x":1}'), toolCall('b', 'g', '{}')],
    },
  ]);
  const sse = Buffer.concat([
    ...chunksFromCompletion(original),
    Buffer.from(gatewayChunk(original, {} as GatewayMetadata, { usage: original.usage, extras: {} })),
    Buffer.from(doneFrame),
  ]);
  const client = new OpenAI({
    apiKey: 'k',
    baseURL: 'http://localhost/v1',
    fetch: async () => new Response(sse, { headers: { 'content-type': 'text/event-stream' } }),
  });
  const stream = client.chat.completions.stream({
    model: 'm',
    messages: [{ role: 'user', content: 'x' }],
    n: 2,
  });
  const final = await stream.finalChatCompletion();
  expect(final.choices.map(({ message, finish_reason }) => ({ message, finish_reason }))).toMatchObject(
    original.choices.map(({ message, finish_reason }) => ({ message, finish_reason })),
  );
  expect(final.usage).toEqual(original.usage);
});
