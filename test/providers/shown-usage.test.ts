import { describe, expect, test } from 'vitest';
import type { Usage } from '../../src/core/answer/usage.ts';
import { providers } from '../../src/providers/registry.ts';
import { contextFor } from './fixtures.ts';
import { readStream } from './read-stream.ts';

/** What a client is shown of a usage is what its row and its price rest on. */

type Shown = Readonly<Record<string, unknown>>;

/** Every way in which vendors of OpenAI shape state a part of another count, and what is kept of it. */
const statedParts: readonly (readonly [holder: string | null, name: string, kept: keyof Usage])[] = [
  ['prompt_tokens_details', 'cached_tokens', 'cachedInputTokens'],
  [null, 'cached_tokens', 'cachedInputTokens'],
  ['prompt_tokens_details', 'cache_write_tokens', 'cacheWriteTokens'],
  ['prompt_tokens_details', 'cache_creation_tokens', 'cacheWriteTokens'],
  ['completion_tokens_details', 'reasoning_tokens', 'reasoningTokens'],
];
/** As parts of 5 and of 2 tokens. */
const values: readonly unknown[] = [0, 2, 3, 5, 6, 99, 1e18, -1, 1.5, '3', {}, null];

const single = statedParts.flatMap(([holder, name]) =>
  values.map((value) => (holder === null ? { [name]: value } : { [holder]: { [name]: value } })),
);
const together: readonly Shown[] = [
  { prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 } },
  { prompt_tokens_details: { cached_tokens: 9, cache_creation_tokens: 1 } },
  { prompt_tokens_details: { cache_write_tokens: 1, cache_creation_tokens: 2 } },
  { prompt_tokens_details: { cached_tokens: 1 }, cached_tokens: 2 },
  { prompt_tokens_details: { cached_tokens: null }, cached_tokens: 7 },
  { prompt_tokens_details: null, completion_tokens_details: [] },
];

const completion = { choices: [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }] };
const chunk = { choices: [{ index: 0, delta: { content: 'x' }, finish_reason: 'stop' }] };

/** A part that is not shown as a number is none that could contradict. */
function contradictions(shown: Shown, usage: Usage): string[] {
  return statedParts.flatMap(([holder, name, kept]) => {
    const details = holder === null ? shown : ((shown[holder] ?? {}) as Shown);
    const value = details[name] ?? null;
    return value === null || value === usage[kept]
      ? []
      : [`${name} ${JSON.stringify(value)}, not ${usage[kept]}`];
  });
}

describe('what a client is shown is what row and price have', () => {
  test.each([...single, ...together].map((parts) => [JSON.stringify(parts), parts] as const))(
    '%s',
    (_name, parts) => {
      const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7, ...parts };
      const context = contextFor('openai', {});
      const answer = providers.openai.translateAnswer(
        Buffer.from(JSON.stringify({ ...completion, usage })),
        context,
      );
      if (answer.kind !== 'answer') throw new Error(answer.reason);
      const events = [chunk, { choices: [], usage }].map((event) => `data: ${JSON.stringify(event)}\n\n`);
      const stream = readStream('openai', context, [Buffer.from(events.join(''))]);

      const streamed = (stream.wireUsage ?? {}) as unknown as Shown;
      expect(contradictions(streamed, stream.usage)).toEqual([]);
      const whole = answer.completion.usage as unknown as Shown;
      expect(contradictions(whole, answer.usage)).toEqual([]);
      expect(whole).toEqual(streamed);
    },
  );
});
