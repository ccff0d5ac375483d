import { describe, expect, test } from 'vitest';
import { costMicroUsd, formatMicroUsd } from '../../src/core/answer/cost.ts';
import { providers } from '../../src/providers/registry.ts';
import { contextFor, loadCases, shippedTables } from './fixtures.ts';
import { readStream } from './read-stream.ts';

interface MoneyCase {
  readonly model: string;
  /** The vendor's usage object of a whole answer. */
  readonly usage?: unknown;
  /** Usage objects of a stream, in the order they come. */
  readonly streamed?: readonly unknown[];
  readonly cost: string;
}

function wholeBody(given: MoneyCase & { provider: string }): string {
  return given.provider === 'anthropic'
    ? JSON.stringify({
        type: 'message',
        content: [{ type: 'text', text: 'x' }],
        stop_reason: 'end_turn',
        usage: given.usage,
      })
    : JSON.stringify({ choices: [{ message: { content: 'x' }, finish_reason: 'stop' }], usage: given.usage });
}

function streamBody(given: MoneyCase & { provider: string }): string {
  const usages = given.streamed ?? [];
  const events =
    given.provider === 'anthropic'
      ? [
          { type: 'message_start', message: { usage: usages[0] } },
          { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x' } },
          ...usages
            .slice(1)
            .map((usage) => ({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })),
        ]
      : [
          { choices: [{ index: 0, delta: { content: 'x' } }], usage: null },
          { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
          ...usages.map((usage) => ({ choices: [], usage })),
        ];
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
}

describe('what an answer costs', () => {
  test.each(loadCases<MoneyCase>('money'))('$provider $model: $name is $cost', (given) => {
    const context = contextFor(given.provider, given);
    const price = shippedTables.price(given.provider, given.model);
    if (given.streamed !== undefined) {
      const { usage } = readStream(given.provider, context, [Buffer.from(streamBody(given))]);
      expect(formatMicroUsd(costMicroUsd(usage, price))).toBe(given.cost);
    }
    if (given.usage === undefined) return;
    const answer = providers[given.provider].translateAnswer(Buffer.from(wholeBody(given)), context);
    if (answer.kind !== 'answer') throw new Error(answer.reason);
    expect(formatMicroUsd(costMicroUsd(answer.usage, price))).toBe(given.cost);
    expect(answer.completion.choices[0]?.message.content).toBe('x');
  });
});
