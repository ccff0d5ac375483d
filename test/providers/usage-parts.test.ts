/** Whatever counts a vendor states, no part of the input is more than its whole has left. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { maxTokenCount } from '../../src/core/answer/usage.ts';
import { UsageReader } from '../../src/providers/anthropic/usage.ts';

const count = fc.oneof(fc.constantFrom(0, 1, 100, maxTokenCount), fc.nat(), fc.constant(undefined));

test('the parts of any counts of Anthropic add up to no more than the input', () => {
  const stated = fc.record({
    input_tokens: count,
    cache_read_input_tokens: count,
    cache_creation_input_tokens: count,
    cache_creation: fc.record({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }),
    output_tokens: count,
  });
  fc.assert(
    fc.property(fc.array(stated, { minLength: 1, maxLength: 3 }), (events) => {
      const reader = new UsageReader();
      for (const event of events) reader.take(event);
      const usage = reader.usage(true);
      const { inputTokens, cachedInputTokens, cacheWriteTokens, cacheWriteLongTokens } = usage;
      expect(cachedInputTokens + cacheWriteTokens + cacheWriteLongTokens).toBeLessThanOrEqual(inputTokens);
      expect(inputTokens).toBeLessThanOrEqual(maxTokenCount);
      expect(
        Math.min(...Object.values(usage).filter((part) => typeof part === 'number')),
      ).toBeGreaterThanOrEqual(0);
    }),
  );
});
