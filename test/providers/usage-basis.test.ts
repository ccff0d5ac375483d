import { describe, expect, test } from 'vitest';
import type { Usage } from '../../src/core/answer/usage.ts';
import { noUsage } from '../../src/core/answer/usage.ts';
import type { ProviderName } from '../../src/core/provider-name.ts';
import { providers } from '../../src/providers/registry.ts';
import { contextFor } from './fixtures.ts';
import { readStream } from './read-stream.ts';

/** `complete` are counts only when none is missing and none is what nobody can have meant. */

interface Stated {
  readonly name: string;
  readonly usage: unknown;
  readonly read: Partial<Usage>;
}

const complete = (read: Partial<Usage>): Partial<Usage> => ({ basis: 'complete', ...read });
const partial = (read: Partial<Usage>): Partial<Usage> => ({ basis: 'partial', ...read });

const compatible: readonly Stated[] = [
  {
    name: 'both counts',
    usage: { prompt_tokens: 5, completion_tokens: 2, prompt_tokens_details: { cached_tokens: null } },
    read: complete({ inputTokens: 5, outputTokens: 2 }),
  },
  { name: 'no output', usage: { prompt_tokens: 5 }, read: partial({ inputTokens: 5 }) },
  {
    name: 'no input',
    usage: { prompt_tokens: null, completion_tokens: 2 },
    read: partial({ outputTokens: 2 }),
  },
  {
    name: 'a huge input',
    usage: { prompt_tokens: 1e18, completion_tokens: 2 },
    read: partial({ outputTokens: 2 }),
  },
  {
    name: 'a negative output',
    usage: { prompt_tokens: 5, completion_tokens: -2 },
    read: partial({ inputTokens: 5 }),
  },
  { name: 'nothing believable', usage: { prompt_tokens: -5, completion_tokens: 1e18 }, read: {} },
  { name: 'no counts', usage: {}, read: {} },
  ...[6, 1e18].map((cached) => ({
    name: `${cached} cached of 5`,
    usage: { prompt_tokens: 5, completion_tokens: 2, prompt_tokens_details: { cached_tokens: cached } },
    read: partial({ inputTokens: 5, outputTokens: 2, cachedInputTokens: cached === 6 ? 5 : 0 }),
  })),
  {
    name: 'more written than is left',
    usage: {
      prompt_tokens: 5,
      completion_tokens: 2,
      prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
    },
    read: partial({ inputTokens: 5, outputTokens: 2, cachedInputTokens: 4, cacheWriteTokens: 1 }),
  },
  {
    name: 'reasoning that is counted apart',
    usage: { prompt_tokens: 5, completion_tokens: 2, completion_tokens_details: { reasoning_tokens: 9 } },
    read: complete({ inputTokens: 5, outputTokens: 2, reasoningTokens: 2 }),
  },
];

const anthropic: readonly Stated[] = [
  {
    name: 'both counts',
    usage: { input_tokens: 5, output_tokens: 2, cache_read_input_tokens: null },
    read: complete({ inputTokens: 5, outputTokens: 2 }),
  },
  { name: 'no output', usage: { input_tokens: 5 }, read: partial({ inputTokens: 5 }) },
  { name: 'no input', usage: { output_tokens: 2 }, read: partial({ outputTokens: 2 }) },
  {
    name: 'a huge input',
    usage: { input_tokens: 1e18, output_tokens: 2 },
    read: partial({ outputTokens: 2 }),
  },
  {
    name: 'a negative cached part',
    usage: { input_tokens: 5, output_tokens: 2, cache_read_input_tokens: -1 },
    read: partial({ inputTokens: 5, outputTokens: 2 }),
  },
  {
    name: 'more written for an hour than at all',
    usage: {
      input_tokens: 5,
      output_tokens: 2,
      cache_creation_input_tokens: 1,
      cache_creation: { ephemeral_1h_input_tokens: 3 },
    },
    read: partial({ inputTokens: 6, outputTokens: 2, cacheWriteLongTokens: 1 }),
  },
  { name: 'no counts', usage: {}, read: {} },
];

const cases = [
  ...compatible.map((stated) => ({ ...stated, provider: 'openai' as const })),
  ...anthropic.map((stated) => ({ ...stated, provider: 'anthropic' as const })),
];

function wholeBody(provider: ProviderName, usage: unknown): string {
  return JSON.stringify(
    provider === 'anthropic'
      ? { content: [{ type: 'text', text: 'x' }], stop_reason: 'end_turn', usage }
      : { choices: [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }], usage },
  );
}

function streamBody(provider: ProviderName, usage: unknown): string {
  const events =
    provider === 'anthropic'
      ? [
          { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x' } },
          { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
          { type: 'message_stop' },
        ]
      : [{ choices: [{ index: 0, delta: { content: 'x' }, finish_reason: 'stop' }] }, { choices: [], usage }];
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
}

describe('what usage rests on', () => {
  test.each(cases)('$provider: $name', ({ provider, usage, read }) => {
    const context = contextFor(provider, {});
    const answer = providers[provider].translateAnswer(Buffer.from(wholeBody(provider, usage)), context);
    expect(answer).toMatchObject({ kind: 'answer', usage: { ...noUsage, ...read } });
    const stream = readStream(provider, context, [Buffer.from(streamBody(provider, usage))]);
    expect(stream.phase).toBe('finished');
    expect(stream.usage).toEqual({ ...noUsage, ...read });
  });
});
