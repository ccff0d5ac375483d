/** SPEC 2.4 and 1.9: what an answer costs; the response, the log row and the statistics say the same. */
import { describe, expect, test } from 'vitest';
import { chatOk, gatewayOf, logRowsOnceThere, streamed } from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { answer } from '../harness/vendors/vendor-plans.ts';
import { costPattern } from '../harness/vendors/wire-types.ts';

const gateway = useGateway();

type Usage = Record<string, unknown> | null;
/** Prices of the test tables, micro-dollars per token: gpt-test 1 / 5 / cached 0.1, claude-test 2 / 10 / 0.2 / write 2.5. */
const cases: [
  name: string,
  override: string,
  usage: Usage,
  cost: string,
  tokensIn: number,
  tokensOut: number,
][] = [
  [
    'input and output',
    'openai:gpt-test',
    { prompt_tokens: 1000, completion_tokens: 200, total_tokens: 1200 },
    '0.002000',
    1000,
    200,
  ],
  [
    'cached tokens once, at their own rate',
    'openai:gpt-test',
    {
      prompt_tokens: 1000,
      completion_tokens: 200,
      total_tokens: 1200,
      prompt_tokens_details: { cached_tokens: 400 },
    },
    '0.001640',
    1000,
    200,
  ],
  [
    'reasoning as output, once',
    'openai:gpt-test',
    {
      prompt_tokens: 10,
      completion_tokens: 100,
      total_tokens: 110,
      completion_tokens_details: { reasoning_tokens: 90 },
    },
    '0.000510',
    10,
    100,
  ],
  [
    'a long context wholly at its own rates',
    'openai:gpt-test',
    { prompt_tokens: 10_001, completion_tokens: 2, total_tokens: 10_003 },
    '0.020017',
    10_001,
    2,
  ],
  [
    'a context at the threshold at the usual rates',
    'openai:gpt-test',
    { prompt_tokens: 10_000, completion_tokens: 2, total_tokens: 10_002 },
    '0.010010',
    10_000,
    2,
  ],
  [
    'half a micro-dollar rounded up',
    'openai:gpt-test-small',
    { prompt_tokens: 5, completion_tokens: 0, total_tokens: 5 },
    '0.000001',
    5,
    0,
  ],
  [
    'less than half rounded down',
    'openai:gpt-test-small',
    { prompt_tokens: 4, completion_tokens: 0, total_tokens: 4 },
    '0.000000',
    4,
    0,
  ],
  [
    'one rounding for the whole',
    'openai:gpt-test-small',
    { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 },
    '0.000001',
    4,
    1,
  ],
  [
    'what binary floats get wrong',
    'openai:gpt-test-small',
    { prompt_tokens: 49_100, completion_tokens: 0, total_tokens: 49_100 },
    '0.004910',
    49_100,
    0,
  ],
  [
    'zero tokens',
    'openai:gpt-test',
    { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    '0.000000',
    0,
    0,
  ],
  [
    'a dated model by its prefix',
    'openai:gpt-test-2026-08-01',
    { prompt_tokens: 1000, completion_tokens: 0, total_tokens: 1000 },
    '0.001000',
    1000,
    0,
  ],
  [
    'an unknown model',
    'openai:mystery',
    { prompt_tokens: 1000, completion_tokens: 10, total_tokens: 1010 },
    '0.000000',
    1000,
    10,
  ],
  [
    'twenty dollars exactly',
    'openai:gpt-test-large',
    { prompt_tokens: 2_000_000, completion_tokens: 0, total_tokens: 2_000_000 },
    '20.000000',
    2_000_000,
    0,
  ],
  [
    'sarvam',
    'sarvam:sarvam-test',
    { prompt_tokens: 1000, completion_tokens: 1000, total_tokens: 2000, prompt_tokens_details: null },
    '0.001120',
    1000,
    1000,
  ],
  [
    'together',
    'together:tog/test',
    { prompt_tokens: 1000, completion_tokens: 1000, total_tokens: 2000 },
    '0.000750',
    1000,
    1000,
  ],
  [
    'anthropic input and output',
    'anthropic:claude-test',
    { input_tokens: 100, output_tokens: 30 },
    '0.000500',
    100,
    30,
  ],
  [
    'anthropic cache reads beside the input, never inside it',
    'anthropic:claude-test',
    { input_tokens: 100, cache_read_input_tokens: 1000, output_tokens: 30 },
    '0.000700',
    1100,
    30,
  ],
  [
    'anthropic cache writes of both durations',
    'anthropic:claude-test',
    {
      input_tokens: 100,
      cache_read_input_tokens: 1000,
      cache_creation_input_tokens: 200,
      cache_creation: { ephemeral_5m_input_tokens: 150, ephemeral_1h_input_tokens: 50 },
      output_tokens: 30,
    },
    '0.001275',
    1300,
    30,
  ],
];

describe('the cost of', () => {
  test.each(cases)(
    '%s (%s) is the same in answer, row and statistics',
    async (_name, model, usage, cost, input, output) => {
      const owner = await registerWithKeys(gateway.url);
      gateway.vendors.always(answer({ usage }));
      const headers = { 'x-gateway-override-model': model };
      const body = await chatOk(owner.client, {}, headers);
      expect(body.gateway.cost_usd).toBe(cost);
      expect(body.usage).toMatchObject({ prompt_tokens: input, completion_tokens: output });
      const stream = await streamed(owner.client, {}, headers);
      expect(gatewayOf(stream).cost_usd).toBe(cost);
      const rows = await logRowsOnceThere(owner.client, 2);
      expect(rows.map((row) => row.cost_usd)).toEqual([cost, cost]);
      expect(rows.map((row) => [row.input_tokens, row.output_tokens])).toEqual([
        [input, output],
        [input, output],
      ]);
      expect(rows.every((row) => costPattern.test(row.cost_usd))).toBe(true);
    },
  );
});

describe('usage that is missing or hostile', () => {
  test.each([
    ['missing', null],
    ['negative', { prompt_tokens: -5, completion_tokens: -1, total_tokens: -6 }],
    ['text', { prompt_tokens: '12', completion_tokens: 'many', total_tokens: 'x' }],
    ['fractional', { prompt_tokens: 1.5, completion_tokens: 0.2, total_tokens: 1.7 }],
    ['beyond integers', { prompt_tokens: 1e300, completion_tokens: 1, total_tokens: 1e300 }],
    ['null counts', { prompt_tokens: null, completion_tokens: null, total_tokens: null }],
  ])('is no reason to fail, and the cost is a plain figure: %s', async (_name, usage) => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    gateway.vendors.openai.always(answer({ usage }));
    const body = await chatOk(owner.client);
    expect(body.gateway.cost_usd).toMatch(costPattern);
    if (usage === null) expect(body.gateway.cost_usd).toBe('0.000000');
    for (const field of ['prompt_tokens', 'completion_tokens', 'total_tokens'] as const) {
      expect(Number.isSafeInteger(body.usage[field]), `${field} = ${body.usage[field]}`).toBe(true);
      expect(body.usage[field]).toBeGreaterThanOrEqual(0);
    }
    const [row] = await logRowsOnceThere(owner.client, 1);
    expect(row?.cost_usd).toBe(body.gateway.cost_usd);
    expect(Number.isSafeInteger(row?.input_tokens)).toBe(true);
  });

  test('with cached tokens above the input never makes a negative cost', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    gateway.vendors.openai.always(
      answer({
        usage: {
          prompt_tokens: 10,
          completion_tokens: 0,
          total_tokens: 10,
          prompt_tokens_details: { cached_tokens: 500 },
        },
      }),
    );
    expect((await chatOk(owner.client)).gateway.cost_usd).toMatch(costPattern);
  });

  test('details of usage pass through as the vendor gave them', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 4,
      total_tokens: 14,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    gateway.vendors.openai.always(answer({ usage }));
    expect((await chatOk(owner.client)).usage).toEqual(usage);
  });
});
