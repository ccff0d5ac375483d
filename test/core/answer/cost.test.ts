import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { costMicroUsd, formatMicroUsd } from '../../../src/core/answer/cost.ts';
import type { Usage } from '../../../src/core/answer/usage.ts';
import { noUsage } from '../../../src/core/answer/usage.ts';
import type { PriceRow } from '../../../src/core/tables/price.ts';
import { compilePrice } from '../../../src/core/tables/price.ts';

const row: PriceRow = {
  provider: 'openai',
  model: 'm',
  input: '1.00',
  output: '5.00',
  cached_input: '0.10',
  cache_write: '1.25',
  cache_write_long: '2.00',
  long_context: { above_input_tokens: 1000, input: '2.00', output: '10.00', cached_input: '0.20' },
};
const price = compilePrice(row);

function usage(counts: Partial<Usage>): Usage {
  return { ...noUsage, basis: 'complete', ...counts };
}

describe('cost', () => {
  test.each<[string, Partial<Usage>, bigint]>([
    ['input at the input rate', { inputTokens: 100 }, 100n],
    ['output at the output rate', { outputTokens: 100 }, 500n],
    ['cached input at its own', { inputTokens: 100, cachedInputTokens: 100 }, 10n],
    ['cache writes at their own', { inputTokens: 100, cacheWriteTokens: 100 }, 125n],
    ['long cache writes at their own', { inputTokens: 100, cacheWriteLongTokens: 100 }, 200n],
    [
      'each token once',
      {
        inputTokens: 100,
        cachedInputTokens: 50,
        cacheWriteTokens: 20,
        cacheWriteLongTokens: 10,
        outputTokens: 10,
      },
      20n + 5n + 25n + 20n + 50n,
    ],
    ['reasoning is output already', { outputTokens: 100, reasoningTokens: 90 }, 500n],
    ['at the threshold the usual rates', { inputTokens: 1000, outputTokens: 1 }, 1005n],
    ['above it the long ones for all', { inputTokens: 1001, outputTokens: 1 }, 2012n],
    [
      'parts larger than the whole are cut',
      { inputTokens: 10, cachedInputTokens: 100, cacheWriteTokens: 100 },
      1n,
    ],
    [
      'three parts are cut in turn',
      { inputTokens: 10, cachedInputTokens: 4, cacheWriteTokens: 4, cacheWriteLongTokens: 100 },
      9n,
    ],
    ['NaN', { inputTokens: Number.NaN, outputTokens: 1 }, 5n],
    ['infinity', { inputTokens: Number.POSITIVE_INFINITY, outputTokens: 1 }, 5n],
    ['a fraction', { inputTokens: 0.5, outputTokens: 1 }, 5n],
    ['a negative count', { inputTokens: -5, cachedInputTokens: -5, outputTokens: 1 }, 5n],
    ['a count nobody can have meant', { inputTokens: 2 ** 53, outputTokens: 1 }, 5n],
  ])('%s', (_name, counts, micro) => {
    expect(costMicroUsd(usage(counts), price)).toBe(micro);
  });

  test('is 0 without a price and without reported usage', () => {
    expect(costMicroUsd(usage({ inputTokens: 100 }), null)).toBe(0n);
    expect(costMicroUsd({ ...noUsage, inputTokens: 100 }, price)).toBe(0n);
  });

  test('is rounded half up, once, at the end', () => {
    const tenth = compilePrice({ provider: 'openai', model: 'm', input: '0.10', output: '0.40' });
    expect(costMicroUsd(usage({ inputTokens: 4 }), tenth)).toBe(0n);
    expect(costMicroUsd(usage({ inputTokens: 5 }), tenth)).toBe(1n);
    expect(costMicroUsd(usage({ inputTokens: 1, outputTokens: 1 }), tenth)).toBe(1n);
  });

  test('never throws and is never negative, whatever the counts', () => {
    const count = fc.oneof(fc.double(), fc.integer(), fc.nat());
    const counts = fc.record({
      inputTokens: count,
      outputTokens: count,
      cachedInputTokens: count,
      cacheWriteTokens: count,
      cacheWriteLongTokens: count,
      reasoningTokens: count,
    });
    fc.assert(fc.property(counts, (given) => costMicroUsd(usage(given), price) >= 0n));
  });

  test('agrees with exact fractions on sane counts', () => {
    const count = fc.nat({ max: 500 });
    fc.assert(
      fc.property(count, count, count, (plain, cached, output) => {
        const micro = costMicroUsd(
          usage({ inputTokens: plain + cached, cachedInputTokens: cached, outputTokens: output }),
          price,
        );
        expect(micro).toBe(BigInt(Math.floor((plain * 10 + cached + output * 50 + 5) / 10)));
      }),
    );
  });
});

describe('the form of amounts', () => {
  test.each([
    [0n, '0.000000'],
    [1n, '0.000001'],
    [1_250n, '0.001250'],
    [999_999n, '0.999999'],
    [1_000_000n, '1.000000'],
    [123_456_789_012n, '123456.789012'],
    [-5n, '-0.000005'],
  ])('%s micro-dollars are %s', (micro, text) => {
    expect(formatMicroUsd(micro)).toBe(text);
  });
});
