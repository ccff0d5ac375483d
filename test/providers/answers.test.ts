import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Usage } from '../../src/core/answer/usage.ts';
import { noUsage } from '../../src/core/answer/usage.ts';
import { providers } from '../../src/providers/registry.ts';
import { contextFor, loadCases } from './fixtures.ts';

interface AnswerCase {
  readonly model?: string;
  /** An object, or the text as it comes. */
  readonly body: unknown;
  /** The answer's own text goes out as it came. */
  readonly unchanged?: boolean;
  /** The whole `chat.completion` expected, where it differs. */
  readonly completion?: unknown;
  /** Part of the priced classes; `{}` means none reported. */
  readonly usage?: Partial<Usage>;
  /** Words of the reason when the answer is unreadable. */
  readonly unreadable?: string;
  /** The code that an override answers then. */
  readonly code?: string;
  /** The vendor does not say why it ended. */
  readonly incomplete?: true;
}

describe('whole answers', () => {
  test.each(loadCases<AnswerCase>('answers'))('$provider: $name', (given) => {
    const text = typeof given.body === 'string' ? given.body : JSON.stringify(given.body);
    const answer = providers[given.provider].translateAnswer(
      Buffer.from(text),
      contextFor(given.provider, given),
    );

    expect(answer.kind === 'incomplete').toBe(given.incomplete === true);
    if (answer.kind !== 'answer') {
      expect(answer.reason).not.toContain('again');
      if (given.incomplete === true) return;
      expect(answer.reason).toContain(given.unreadable ?? '(expected a readable answer)');
      if (given.code !== undefined) expect(answer.code).toBe(given.code);
      expect(answer.code ?? '').not.toMatch(/^stream_/);
      return;
    }
    expect(given.unreadable).toBeUndefined();
    expect(answer.json.endsWith('}')).toBe(true);
    expect(JSON.parse(answer.json)).toEqual(answer.completion);
    expect(answer.bytes).toBe(Buffer.byteLength(answer.json));
    expect(answer.completion).not.toHaveProperty('gateway');
    for (const count of ['prompt_tokens', 'completion_tokens', 'total_tokens'] as const) {
      expect(Number.isSafeInteger(answer.completion.usage[count])).toBe(true);
    }
    if (given.unchanged === true) expect(answer.json).toBe(text.trim());
    else expect(answer.completion).toEqual(given.completion);
    if (given.usage !== undefined) expect(answer.usage).toEqual({ ...noUsage, ...given.usage });
  });
});

test('an answer says how many bytes its text has, whatever bytes its vendor sent', () => {
  const [before, after] = JSON.stringify({
    ...{ id: 'a', object: 'chat.completion', created: 1, model: 'm' },
    choices: [{ index: 0, message: { role: 'assistant', content: '@' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  }).split('@') as [string, string];
  const content = fc
    .uint8Array()
    .map((bytes) => Buffer.from(bytes.filter((byte) => byte >= 0x20 && byte !== 0x22)));
  const space = fc.constantFrom('', ' ', '\r\n', '\ufeff', '\u00a0');
  fc.assert(
    fc.property(space, content, space, (first, bytes, last) => {
      const parts = [Buffer.from(first + before), bytes, Buffer.from(after + last)];
      const answer = providers.openai.translateAnswer(Buffer.concat(parts), contextFor('openai', {}));
      if (answer.kind !== 'answer') return;
      expect(answer.bytes).toBe(Buffer.byteLength(answer.json));
    }),
  );
});

test('of another gateway nothing is passed on, wherever its block stands', () => {
  const gateway = { provider: 'other', request_id: 'r' };
  const message = { role: 'assistant', content: 'x' };
  const choice = { index: 0, message, finish_reason: 'stop' };
  const answer = {
    ...{ id: 'a', object: 'chat.completion', created: 1, model: 'm' },
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
  const clean = { ...answer, choices: [choice] };
  for (const given of [
    { ...clean, gateway },
    { ...answer, choices: [{ ...choice, gateway }] },
    { ...answer, choices: [{ ...choice, message: { ...message, gateway } }] },
  ]) {
    const read = providers.openai.translateAnswer(
      Buffer.from(JSON.stringify(given)),
      contextFor('openai', {}),
    );
    expect(read.kind === 'answer' && JSON.parse(read.json)).toEqual(clean);
  }
});
