import { describe, expect, test } from 'vitest';
import { estimatedUsage, mostOutputTokens, promptBytes } from '../../../src/core/answer/estimated-usage.ts';
import { noUsage } from '../../../src/core/answer/usage.ts';
import type { ChatRequest } from '../../../src/core/request/chat-request.ts';

const stated = (inputTokens: number, outputTokens: number) => ({
  ...noUsage,
  ...(inputTokens + outputTokens > 0 && { basis: 'partial' as const }),
  inputTokens,
  outputTokens,
});

const nothing = { promptBytes: 0, answerBytes: 0, textBytes: 0, unseenMs: 0, mostTokens: null };
const some = { ...nothing, promptBytes: 400, answerBytes: 2_500, textBytes: 40 };

test.each([
  ['nothing stated', stated(0, 0), some, 100, 10],
  ['the input stated', stated(120, 0), some, 120, 10],
  ['more stated than it looks like', stated(500, 90), some, 500, 90],
  ['a part of a token', stated(0, 0), { ...nothing, promptBytes: 1, answerBytes: 1, textBytes: 1 }, 1, 1],
  ['many tokens in an event', stated(0, 0), { ...some, textBytes: 1_000 }, 100, 250],
  ['nothing came', stated(0, 0), nothing, 0, 0],
  ['a minute of reasoning that is not shown', stated(0, 0), { ...some, unseenMs: 60_000 }, 100, 6_010],
  ['less reasoning than was stated', stated(0, 9_000), { ...some, unseenMs: 60_000 }, 100, 9_000],
  ['a limit below that', stated(0, 0), { ...some, unseenMs: 60_000, mostTokens: 2_000 }, 100, 2_000],
  ['a limit below what came', stated(0, 0), { ...some, unseenMs: 60_000, mostTokens: 2 }, 100, 10],
])('a cut answer with %s', (_name, usage, cut, inputTokens, outputTokens) => {
  const guessed = estimatedUsage(usage, cut);
  expect(guessed).toEqual({ ...noUsage, basis: 'partial', inputTokens, outputTokens });
});

test.each([
  [{}, null],
  [{ max_tokens: 5 }, 5],
  [{ max_completion_tokens: 7, max_tokens: 5, n: 3 }, 21],
])('the most tokens of a request with %j', (fields, most) => {
  expect(mostOutputTokens({ model: 'gw/cheap', messages: [], ...fields } as ChatRequest)).toBe(most);
});

describe('the bytes of a prompt', () => {
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
    ['texts', { messages: said('Hello', 'नमस्ते') }, 5 + 18],
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
    expect(promptBytes({ model: 'gw/cheap', ...request } as ChatRequest)).toBe(count);
  });
});
