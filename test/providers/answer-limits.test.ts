import { describe, expect, test } from 'vitest';
import { providers } from '../../src/providers/registry.ts';
import { contextFor } from './fixtures.ts';
import { readStream } from './read-stream.ts';

/** What a vendor may have us parse and keep: counts are looked at before anything is built from them. */

const many = 300_000;
const repeat = (text: string, count: number): string => Array(count).fill(text).join(',');
const distinct = (count: number): string => Array.from({ length: count }, (_, i) => `"k${i}":0`).join(',');
const message = '{"role":"assistant","content":"a"}';
const openAi = (choices: string, rest = ''): string => `{"id":"a","choices":[${choices}]${rest}}`;
const choice = (inner: string): string => `{"message":${inner},"finish_reason":"stop"}`;
const calls = (count: number): string =>
  choice(`{"content":"a","tool_calls":[${repeat('{"function":{"name":"f"}}', count)}]}`);
const anthropic = (content: string, rest = ''): string =>
  `{"type":"message","stop_reason":"end_turn","content":[${content}]${rest}}`;
const block = '{"type":"tool_use","name":"f","input":{}}';

describe('an answer', () => {
  test.each<[what: string, provider: 'openai' | 'anthropic', body: string]>([
    ['of hundreds of thousands of choices', 'openai', openAi(repeat(choice(message), many))],
    ['of empty choices', 'openai', openAi(repeat('{}', many))],
    ['of 129 choices', 'openai', openAi(repeat(choice(message), 129))],
    ['of 1,025 tool calls', 'openai', openAi(calls(1025))],
    ['of 1,026 tool calls in two choices', 'openai', openAi(`${calls(513)},${calls(513)}`)],
    ['with more values than any answer', 'openai', openAi(choice(message), `,"x":[${repeat('0', many)}]`)],
    ['with an object of 5,000 keys', 'openai', openAi(choice(message), `,${distinct(5000)}`)],
    ['with deep nesting', 'openai', openAi(choice(message), `,"x":${'['.repeat(1001)}${']'.repeat(1001)}`)],
    ['of hundreds of thousands of blocks', 'anthropic', anthropic(repeat('{}', many))],
    ['of 4,000 calls', 'anthropic', anthropic(repeat(block, 4000))],
    ['with more values than any message', 'anthropic', anthropic(block, `,"x":[${repeat('0', many)}]`)],
  ])('%s is unreadable (%s)', (_what, provider, body) => {
    const bytes = Buffer.from(body);
    const begun = performance.now();
    expect(providers[provider].translateAnswer(bytes, contextFor(provider, {})).kind).toBe('unreadable');
    // Parsed, the larger of them took up to a second and hundreds of megabytes.
    expect(performance.now() - begun).toBeLessThan(200);
  });

  test.each<[what: string, body: string]>([
    ['128 choices', openAi(repeat(choice(message), 128))],
    ['1,024 tool calls', openAi(calls(1024))],
    [
      'log-probabilities of a thousand tokens with twenty alternatives',
      openAi(
        `{"message":${message},"finish_reason":"stop","logprobs":{"content":[${repeat(
          `{"token":"a","logprob":-1,"bytes":[97],"top_logprobs":[${repeat('{"token":"a","logprob":-1,"bytes":[97]}', 20)}]}`,
          1000,
        )}]}}`,
      ),
    ],
  ])('of %s is one', (_what, body) => {
    expect(providers.openai.translateAnswer(Buffer.from(body), contextFor('openai', {})).kind).toBe('answer');
  });
});

const event = (data: string): Buffer => Buffer.from(`data: ${data}\n\n`);
const delta = (inner: string): string => `{"id":"a","choices":[{"index":0,"delta":${inner}}]}`;
const nameless = (index: number): string =>
  delta(`{"tool_calls":[{"index":${index},"function":{"arguments":"${'x'.repeat(1000)}"}}]}`);
const named = (choiceIndex: number, index: number): string =>
  `{"id":"a","choices":[{"index":${choiceIndex},"delta":{"tool_calls":[{"index":${index},"id":"c${index}","function":{"name":"f"}}]}}]}`;
const toolStart = (index: number, input: string): string =>
  `{"type":"content_block_start","index":${index},"content_block":{"type":"tool_use","name":"f","input":{"a":"${input}"}}}`;

describe('a stream', () => {
  test.each<[what: string, provider: 'openai' | 'anthropic', events: Buffer[]]>([
    [
      'an event of 60,000 values',
      'openai',
      [event(delta('{"content":"a"}')), event(delta(`{"x":[${repeat('0', 60_000)}]}`))],
    ],
    [
      'an event of 129 choices',
      'openai',
      [event(`{"choices":[${repeat('{"index":0,"delta":{"content":"a"}}', 129)}]}`)],
    ],
    [
      'arguments that wait for their names, spread over calls',
      'openai',
      Array.from({ length: 100 }, (_, i) => event(nameless(i))),
    ],
    [
      'calls spread over choices',
      'openai',
      Array.from({ length: 1100 }, (_, i) => event(named(i % 100, Math.floor(i / 100)))),
    ],
    ['a call with an endless id', 'openai', [event(delta(`{"tool_calls":[{"id":"${'i'.repeat(5000)}"}]}`))]],
    [
      'whole inputs whose blocks never end',
      'anthropic',
      Array.from({ length: 40 }, (_, i) => event(toolStart(i, 'x'.repeat(50_000)))),
    ],
    [
      'more calls than any answer',
      'anthropic',
      Array.from({ length: 1100 }, (_, i) => event(toolStart(i, ''))),
    ],
    ['an event of 60,000 values (Anthropic)', 'anthropic', [event(`{"x":[${repeat('0', 60_000)}]}`)]],
  ])('with %s is broken', (_what, provider, events) => {
    const result = readStream(provider, contextFor(provider, {}), events);
    expect(result.failure?.code).toBe('stream_unreadable');
  });

  test.each<[provider: 'openai' | 'anthropic', first: string, next: string]>([
    [
      'openai',
      `{"id":"${'i'.repeat(50_000)}","model":"${'m'.repeat(50_000)}","choices":[{"delta":{"content":"a"}}]}`,
      '{"choices":[{}]}',
    ],
    [
      'anthropic',
      `{"type":"message_start","message":{"id":"${'i'.repeat(50_000)}","model":"${'m'.repeat(50_000)}"}}`,
      '{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}',
    ],
  ])('does not say a long name again with each event (%s)', (provider, first, next) => {
    const translator = providers[provider].streamTranslator(contextFor(provider, {}));
    let length = translator.push(event(first))?.length ?? 0;
    length += translator.push(Buffer.concat(Array(1000).fill(event(next))))?.length ?? 0;
    expect(length).toBeLessThan(1000 * 1000);
  });
});
