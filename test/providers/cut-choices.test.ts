/** A stream of several choices whose connection ends between two of them. */
import { expect, test } from 'vitest';
import { providers } from '../../src/providers/registry.ts';
import { contextFor } from './fixtures.ts';

const event = (index: number, delta: object, reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'a', choices: [{ index, delta, finish_reason: reason }] })}\n\n`;
const whole = (index: number): string => event(index, { content: 'x' }) + event(index, {}, 'stop');
const done = 'data: [DONE]\n\n';

test.each<[asked: number, body: string, isWhole: boolean]>([
  [1, whole(0), true],
  [1, whole(0) + done, true],
  [2, whole(0), false],
  [2, whole(0) + event(1, { content: 'y' }), false],
  [2, whole(0) + whole(1), true],
  [2, whole(1) + whole(0), true],
  // Its vendor says that there is no more: some know no `n`.
  [2, whole(0) + done, true],
  [3, whole(0) + whole(2), false],
])('asked for %i, %j is whole: %s', (choices, body, isWhole) => {
  for (const provider of ['openai', 'together', 'sarvam', 'self_hosted'] as const) {
    const translator = providers[provider].streamTranslator(contextFor(provider, { choices }));
    translator.push(Buffer.from(body));
    translator.end();
    expect(translator.phase, provider).toBe(isWhole ? 'finished' : 'failed');
  }
});
