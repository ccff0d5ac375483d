import { z } from 'zod';
import type { ProviderName } from '../provider-name.ts';
import { pricedProviderNames } from '../provider-name.ts';
import { maxModelLength } from './model-name.ts';

/** USD per million tokens as a decimal string with at most six places: exact, never a float. */
const rate = z.string().regex(/^\d{1,6}(\.\d{1,6})?$/, 'must be a decimal string such as "0.10"');

const rates = {
  input: rate,
  output: rate,
  /** Default: the input rate. */
  cached_input: rate.optional(),
  /** Writing the vendor's 5-minute prompt cache. Default: 1.25 times input. */
  cache_write: rate.optional(),
  /** Writing the vendor's 1-hour prompt cache. Default: 2 times input. */
  cache_write_long: rate.optional(),
};

export const priceSchema = z.strictObject({
  provider: z.enum(pricedProviderNames),
  /** Exact model name; a longer name with this prefix takes it too, the longest prefix first. */
  model: z.string().min(1).max(maxModelLength),
  ...rates,
  /** Rates of the whole request once its input exceeds the threshold. */
  long_context: z.strictObject({ above_input_tokens: z.int().positive(), ...rates }).optional(),
  /** Where and when the price was read; for people. */
  source: z.string().max(512).optional(),
  date: z.iso.date().optional(),
});

export type PriceRow = z.infer<typeof priceSchema>;

/** Pico-dollars per token: one millionth of a micro-dollar, so six decimals per million tokens are exact. */
export interface Rates {
  readonly input: bigint;
  readonly output: bigint;
  readonly cachedInput: bigint;
  readonly cacheWrite: bigint;
  readonly cacheWriteLong: bigint;
}

export interface Price extends Rates {
  readonly provider: ProviderName;
  readonly model: string;
  readonly longContext: (Rates & { readonly aboveInputTokens: number }) | null;
}

/** What priced an answer: the model that the price row names, and the rates, dollars per million tokens. */
export interface PricedBy {
  readonly model: string;
  readonly input: string;
  readonly output: string;
  readonly cached_input: string;
  readonly cache_write: string;
  readonly cache_write_long: string;
}

const picoPerTokenDigits = 6;

/** Dollars per million tokens are, digit for digit, millions of pico-dollars per token: exact, no float. */
function parseRate(text: string): bigint {
  const [whole = '0', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(picoPerTokenDigits, '0'));
}

/** The decimal string of a rate, without idle zeros: `0.1`. */
function rateText(rate: bigint): string {
  const digits = rate.toString().padStart(picoPerTokenDigits + 1, '0');
  const point = digits.length - picoPerTokenDigits;
  let end = digits.length;
  while (end > point && digits[end - 1] === '0') end -= 1;
  return end === point ? digits.slice(0, point) : `${digits.slice(0, point)}.${digits.slice(point, end)}`;
}

function compileRates(row: z.infer<z.ZodObject<typeof rates>>): Rates {
  const input = parseRate(row.input);
  return {
    input,
    output: parseRate(row.output),
    cachedInput: row.cached_input === undefined ? input : parseRate(row.cached_input),
    cacheWrite: row.cache_write === undefined ? (input * 5n + 2n) / 4n : parseRate(row.cache_write),
    cacheWriteLong: row.cache_write_long === undefined ? input * 2n : parseRate(row.cache_write_long),
  };
}

/** Rates of a price, spelled out. */
export function pricedBy({ model }: Price, charged: Rates): PricedBy {
  return {
    model,
    input: rateText(charged.input),
    output: rateText(charged.output),
    cached_input: rateText(charged.cachedInput),
    cache_write: rateText(charged.cacheWrite),
    cache_write_long: rateText(charged.cacheWriteLong),
  };
}

/** Turns decimal strings into exact integers and fills the documented defaults in. */
export function compilePrice(row: PriceRow): Price {
  const long = row.long_context;
  return Object.freeze({
    provider: row.provider,
    model: row.model,
    ...compileRates(row),
    longContext:
      long === undefined
        ? null
        : Object.freeze({ ...compileRates(long), aboveInputTokens: long.above_input_tokens }),
  });
}

const rateNames = Object.keys({
  input: true,
  output: true,
  cachedInput: true,
  cacheWrite: true,
  cacheWriteLong: true,
} satisfies Record<keyof Rates, true>) as readonly (keyof Rates)[];

/** The highest of each rate that a provider's models have, in a long context too; null: none has a price. */
export function dearestPrice(prices: readonly Price[], provider: ProviderName): Price | null {
  const own = prices.filter((price) => price.provider === provider);
  const [first, ...others] = own.flatMap((price): Rates[] =>
    price.longContext === null ? [price] : [price, price.longContext],
  );
  if (first === undefined) return null;
  const rates: Record<keyof Rates, bigint> = { ...first };
  for (const other of others)
    for (const name of rateNames) if (other[name] > rates[name]) rates[name] = other[name];
  return Object.freeze({ ...rates, provider, model: '', longContext: null });
}

/**
 * The price of a model: its own row, else the row with the longest name that the model's name begins with
 * (answers name dated snapshots), else null.
 */
export function findPrice(prices: readonly Price[], provider: ProviderName, model: string): Price | null {
  let best: Price | null = null;
  for (const price of prices) {
    if (price.provider !== provider || !model.startsWith(price.model)) continue;
    if (best === null || price.model.length > best.model.length) best = price;
  }
  return best;
}
