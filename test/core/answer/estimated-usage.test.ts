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
  ['nothing stated', stated(0, 0), 400, 2_500, 100, 10],
  ['the input stated', stated(120, 0), 400, 2_500, 120, 10],
  ['more stated than it looks like', stated(500, 90), 400, 2_500, 500, 90],
  ['a part of a token', stated(0, 0), 1, 1, 1, 1],
  ['nothing came', stated(0, 0), 0, 0, 0, 0],
])('a cut answer with %s', (_name, usage, characters, answerBytes, inputTokens, outputTokens) => {
  const guessed = estimatedUsage(usage, { promptCharacters: characters, answerBytes });
  expect(guessed).toEqual({ ...noUsage, basis: 'partial', inputTokens, outputTokens });
});

describe('the characters of a prompt', () => {
  const of = (...contents: unknown[]) =>
    promptCharacters({
      model: 'gw/cheap',
      messages: contents.map((content) => ({ role: 'user', content })),
    } as ChatRequest);

  test.each([
    ['texts', ['Hello', 'नमस्ते'], 11],
    ['parts with text', [[{ type: 'text', text: 'abc' }, { type: 'image_url' }], 'de'], 5],
    ['no content', [null, undefined], 0],
  ])('of %s', (_name, contents, count) => {
    expect(of(...contents)).toBe(count);
  });
});
