import { describe, expect, test } from 'vitest';
import type { PriceRow } from '../../../src/core/tables/price.ts';
import {
  compilePrice,
  dearestPrice,
  findPrice,
  pricedBy,
  priceSchema,
} from '../../../src/core/tables/price.ts';

function priceOf(model: string, rates: Partial<PriceRow> = {}) {
  return compilePrice({ provider: 'openai', model, input: '1.00', output: '2.00', ...rates });
}

describe('prices', () => {
  test('decimal strings become exact pico-dollars per token', () => {
    expect(priceOf('m', { input: '0.000001', output: '123456.654321' })).toMatchObject({
      input: 1n,
      output: 123_456_654_321n,
    });
    expect(priceOf('m', { input: '0', output: '7' })).toMatchObject({ input: 0n, output: 7_000_000n });
  });

  test('missing rates have their documented defaults', () => {
    expect(priceOf('m', { input: '0.10' })).toMatchObject({
      cachedInput: 100_000n,
      cacheWrite: 125_000n,
      cacheWriteLong: 200_000n,
      longContext: null,
    });
  });

  test('a row is spelled out for those who ask why', () => {
    const price = priceOf('m', { input: '10.50', output: '0', cached_input: '0.000001' });
    expect(pricedBy(price, price)).toEqual({
      model: 'm',
      input: '10.5',
      output: '0',
      cached_input: '0.000001',
      cache_write: '13.125',
      cache_write_long: '21',
    });
  });

  test('the long-context rates have their own defaults', () => {
    const long = { above_input_tokens: 100, input: '4', output: '8' };
    expect(priceOf('m', { long_context: long }).longContext).toMatchObject({
      aboveInputTokens: 100,
      input: 4_000_000n,
      output: 8_000_000n,
      cachedInput: 4_000_000n,
      cacheWrite: 5_000_000n,
      cacheWriteLong: 8_000_000n,
    });
  });

  const prices = ['gpt-4', 'gpt-4o', 'gpt-4o-mini', 'gpt-4.1'].map((model) => priceOf(model));
  test.each([
    ['gpt-4o', 'gpt-4o'],
    ['gpt-4o-2024-08-06', 'gpt-4o'],
    ['gpt-4o-mini-2024-07-18', 'gpt-4o-mini'],
    ['gpt-4.1-nano', 'gpt-4.1'],
    ['gpt-4-turbo', 'gpt-4'],
    ['gpt-3.5', null],
    ['gpt', null],
    ['', null],
  ])('%s is priced as %s', (model, row) => {
    expect(findPrice(prices, 'openai', model)?.model ?? null).toBe(row);
    expect(findPrice(prices, 'together', model)).toBeNull();
  });

  test.each(['1e3', '-1', '.5', '1.', '1,5', '0.0000001', '1234567', 'NaN', ''])(
    'refuses the rate %s',
    (rate) => {
      expect(
        priceSchema.safeParse({ provider: 'openai', model: 'm', input: rate, output: '1' }).success,
      ).toBe(false);
    },
  );

  test('refuses numbers, whose digits YAML may have changed, and prices of self-hosted models', () => {
    expect(priceSchema.safeParse({ provider: 'openai', model: 'm', input: 0.1, output: '1' }).success).toBe(
      false,
    );
    expect(
      priceSchema.safeParse({ provider: 'self_hosted', model: 'm', input: '1', output: '1' }).success,
    ).toBe(false);
  });
});

test('the dearest price of a provider has the highest of each rate, and another one has no part in it', () => {
  const cheapInput = {
    provider: 'openai',
    model: 'a',
    input: '1',
    output: '8',
    long_context: { above_input_tokens: 1000, input: '3', output: '8' },
  } as const;
  const cheapOutput = {
    provider: 'openai',
    model: 'b',
    input: '2',
    output: '4',
    cached_input: '0.5',
  } as const;
  const elsewhere = { provider: 'together', model: 'c', input: '90', output: '90' } as const;
  const prices = [cheapInput, cheapOutput, elsewhere].map(compilePrice);
  expect(dearestPrice(prices, 'openai')).toMatchObject({
    ...compilePrice({ ...cheapOutput, input: '3', output: '8', cached_input: '3' }),
    model: '',
  });
  expect(dearestPrice(prices, 'sarvam')).toBeNull();
});
