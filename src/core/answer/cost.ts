import type { Price, Rates } from '../tables/price.ts';
import type { Usage } from './usage.ts';
import { isTokenCount } from './usage.ts';

const picoPerMicro = 1_000_000n;
const microPerDollar = 1_000_000n;

/** Those of the price that a request with so many input tokens is charged. */
export function ratesFor(price: Price, inputTokens: number): Rates {
  const long = price.longContext;
  return long !== null && inputTokens > long.aboveInputTokens ? long : price;
}

/** At most `limit` of a count; the classes of one total can so never be priced twice. */
function part(count: number, limit: number): number {
  return isTokenCount(count) ? Math.min(count, limit) : 0;
}

/**
 * Price of one answer in micro-dollars: every token once, by its own class, in whole pico-dollars, rounded
 * half up once at the end. 0 when the price is unknown or the upstream reported no usage (SPEC 2.4); of partial
 * usage the tokens that were stated.
 * Never throws and is never negative, whatever the counts.
 */
export function costMicroUsd(usage: Usage, price: Price | null): bigint {
  if (price === null || usage.basis === 'none') return 0n;
  const input = isTokenCount(usage.inputTokens) ? usage.inputTokens : 0;
  const output = isTokenCount(usage.outputTokens) ? usage.outputTokens : 0;
  const cached = part(usage.cachedInputTokens, input);
  const written = part(usage.cacheWriteTokens, input - cached);
  const writtenLong = part(usage.cacheWriteLongTokens, input - cached - written);
  const rates = ratesFor(price, input);
  const pico =
    BigInt(input - cached - written - writtenLong) * rates.input +
    BigInt(cached) * rates.cachedInput +
    BigInt(written) * rates.cacheWrite +
    BigInt(writtenLong) * rates.cacheWriteLong +
    BigInt(output) * rates.output;
  return (pico + picoPerMicro / 2n) / picoPerMicro;
}

/** Dollars with exactly six decimals, `0.001250`; the one form used in answers, logs, stats and metrics. */
export function formatMicroUsd(microUsd: bigint): string {
  // Nearly every request: the digits of a number cost a third of those of a bigint.
  const below = Number(microUsd);
  if (below >= 0 && below < 1_000_000) return `0.${String(1_000_000 + below).slice(1)}`;
  const amount = microUsd < 0n ? -microUsd : microUsd;
  const fraction = (amount % microPerDollar).toString().padStart(6, '0');
  return `${microUsd < 0n ? '-' : ''}${amount / microPerDollar}.${fraction}`;
}
