import { describe, expect, test } from 'vitest';
import { estimatedUsage, promptCharacters } from '../../../src/core/answer/estimated-usage.ts';
import { noUsage } from '../../../src/core/answer/usage.ts';
import type { ChatRequest } from '../../../src/core/request/chat-request.ts';

const stated = (inputTokens: number, outputTokens: number) => ({
  ...noUsage,
  ...(inputTokens + outputTokens > 0 && { basis: 'partial' as const }),
  inputTokens,
  outputTokens,
});

test.each([
  ['nothing stated', stated(0, 0), 400, 2_500, 40, 100, 10],
  ['the input stated', stated(120, 0), 400, 2_500, 40, 120, 10],
  ['more stated than it looks like', stated(500, 90), 400, 2_500, 40, 500, 90],
  ['a part of a token', stated(0, 0), 1, 1, 1, 1, 1],
  ['many tokens in an event', stated(0, 0), 400, 2_500, 1_000, 100, 250],
  ['nothing came', stated(0, 0), 0, 0, 0, 0, 0],
])(
  'a cut answer with %s',
  (_name, usage, promptCharacters, answerBytes, answerCharacters, inputTokens, outputTokens) => {
    const guessed = estimatedUsage(usage, { promptCharacters, answerBytes, answerCharacters });
    expect(guessed).toEqual({ ...noUsage, basis: 'partial', inputTokens, outputTokens });
  },
);

describe('the characters of a prompt', () => {
  const long = 'x'.repeat(1_000);
  const image = 4_000;
  const said = (...contents: unknown[]) => contents.map((content) => ({ role: 'user', content }));
  const called = {
    role: 'assistant',
    content: null,
    tool_calls: [{ function: { name: 'f', arguments: long } }],
  };
  const named = ['tool_calls', 'function', 'name', 'f', 'arguments'].join('').length;

  test.each<[string, Record<string, unknown>, number]>([
    ['texts', { messages: said('Hello', 'नमस्ते') }, 11],
    ['no content', { messages: said(null, undefined) }, 0],
    ['parts with text', { messages: said([{ type: 'text', text: 'abc' }], 'de') }, 5],
    [
      'an image that is named',
      { messages: said([{ type: 'image_url', image_url: { url: 'https://a.b/c' } }]) },
      image,
    ],
    ['an image that is sent', { messages: said([{ type: 'image_url', image_url: { url: long } }]) }, image],
    [
      'a long recording',
      { messages: said([{ type: 'input_audio', input_audio: { data: 'x'.repeat(10 ** 6) } }]) },
      10_001,
    ],
    ['text in a part of another kind', { messages: said([{ type: 'x', text: long }]) }, image + 1_000],
    ['tool calls of the history', { messages: [called] }, named + 1_000],
    ['a name', { messages: [{ role: 'user', name: long, content: '' }] }, 'name'.length + 1_000],
    [
      'tools',
      { messages: [], tools: [{ function: { description: long } }] },
      'functiondescription'.length + 1_000,
    ],
    [
      'the form of the answer',
      { messages: [], response_format: { type: 'json_schema', json_schema: { [long]: true } } },
      'typejson_schemajson_schema'.length + 1_000,
    ],
    ['nothing but what steers the answer', { messages: [], stop: [long], user: long }, 0],
  ])('of %s', (_name, request, count) => {
    expect(promptCharacters({ model: 'gw/cheap', ...request } as ChatRequest)).toBe(count);
  });
});
