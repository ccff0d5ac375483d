import type { z } from 'zod';
import type { routingTablesSchema } from '../../../src/core/tables/routing-tables.ts';

export type TablesInput = z.input<typeof routingTablesSchema>;

/** Small models with round prices (USD per million tokens = micro-dollars per token). */
export const testPrices = [
  { provider: 'openai', model: 'gpt-test-small', input: '0.10', output: '0.50', cached_input: '0.01' },
  {
    provider: 'openai',
    model: 'gpt-test',
    input: '1.00',
    output: '5.00',
    cached_input: '0.10',
    long_context: { above_input_tokens: 10_000, input: '2.00', output: '7.50', cached_input: '0.20' },
  },
  { provider: 'openai', model: 'gpt-test-large', input: '10.00', output: '50.00' },
  {
    provider: 'anthropic',
    model: 'claude-test',
    input: '2.00',
    output: '10.00',
    cached_input: '0.20',
    cache_write: '2.50',
  },
  { provider: 'together', model: 'tog/test', input: '0.15', output: '0.60' },
  { provider: 'sarvam', model: 'sarvam-test', input: '0.32', output: '0.80', cached_input: '0.12' },
] as const;

/**
 * A valid tables document with the specified order of `gw/balanced`. Cooldowns are out of the way, since
 * these tests make candidates fail by the dozen and still expect them in order.
 */
export function tables(overrides: Partial<TablesInput> = {}): TablesInput {
  return {
    tiers: {
      cheap: [
        { provider: 'openai', model: 'gpt-test-small' },
        { provider: 'together', model: 'tog/test' },
        { provider: 'sarvam', model: 'sarvam-test' },
        { provider: 'anthropic', model: 'claude-test-small' },
      ],
      balanced: [
        { provider: 'openai', model: 'gpt-test' },
        { provider: 'sarvam', model: 'sarvam-test' },
        { provider: 'anthropic', model: 'claude-test' },
      ],
      premium: [
        { provider: 'anthropic', model: 'claude-test-large' },
        { provider: 'openai', model: 'gpt-test-large' },
        { provider: 'sarvam', model: 'sarvam-test' },
      ],
    },
    prices: [...testPrices],
    models: [
      { provider: 'openai', match: '', max_tokens_field: 'max_completion_tokens' },
      {
        provider: 'anthropic',
        match: '',
        default_max_tokens: 4096,
        temperature_max: 1,
        multiple_choices: false,
      },
      { provider: 'sarvam', match: '', api_version: 'v2' },
    ],
    cooldown: { failures: 1000, users: 1000 },
    ...overrides,
  };
}
