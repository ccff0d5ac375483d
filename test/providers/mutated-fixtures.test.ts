import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChatCompletion } from '../../src/core/answer/chat-completion.ts';
import { saysSomething } from '../../src/core/answer/chat-completion.ts';
import { CompletionAccumulator } from '../../src/core/answer/completion-accumulator.ts';
import { chunksFromCompletion } from '../../src/core/answer/completion-chunks.ts';
import { parseExactly } from '../../src/core/json/exact-json.ts';
import type { ProviderName } from '../../src/core/provider-name.ts';
import { providers } from '../../src/providers/registry.ts';
import { contextFor, loadCases } from './fixtures.ts';
import { mutated, swaps } from './mutations.ts';
import { chunksOf, readStream } from './read-stream.ts';

/** Real answers, events and errors with a value of another type put anywhere: an answer or a reason, never a throw. */

type Fixture = { readonly provider: ProviderName; readonly body: unknown };
const answers = loadCases<{ readonly body: unknown }>('answers').filter(
  ({ body }) => typeof body === 'object',
);
const errors = loadCases<{ readonly body: unknown; readonly status: number }>('errors');
const streams = loadCases<{ readonly events?: readonly unknown[]; readonly typed?: readonly unknown[] }>(
  'streams',
)
  .map((given) => ({ provider: given.provider, body: given.events ?? given.typed ?? [] }))
  .filter(({ body }) => body.length > 0);

const pick = <T extends Fixture>(fixtures: readonly T[]) => fc.tuple(fc.constantFrom(...fixtures), swaps);
const runs = { numRuns: 1_500 };

function checkReplay(completion: ChatCompletion): void {
  const chunks = [...chunksFromCompletion(completion)];
  chunksOf(Buffer.concat(chunks).toString('latin1'));
  const accumulator = new CompletionAccumulator(1_000_000);
  for (const chunk of chunks) accumulator.push(chunk);
  accumulator.complete(null);
  saysSomething(completion);
}

describe('with types swapped anywhere', () => {
  test('a whole answer is one, and can be replayed, or is none', () => {
    fc.assert(
      fc.property(pick(answers), ([{ provider, body }, changes]) => {
        const text = JSON.stringify(mutated(body, changes)) ?? 'null';
        const answer = providers[provider].translateAnswer(Buffer.from(text), contextFor(provider, {}));
        if (answer.kind !== 'answer') return;
        expect(parseExactly(answer.json)).toEqual(answer.completion);
        expect(answer.bytes).toBe(Buffer.byteLength(answer.json));
        for (const { message, finish_reason: reason } of answer.completion.choices) {
          expect(reason).toBeTypeOf('string');
          expect(message.content === null || typeof message.content === 'string').toBe(true);
          for (const call of message.tool_calls ?? []) expect(call).toBeTypeOf('object');
        }
        checkReplay(answer.completion);
      }),
      runs,
    );
  });

  test('a stream ends, and says how', () => {
    fc.assert(
      fc.property(pick(streams), ([{ provider, body }, changes]) => {
        const events = mutated(body, changes);
        const lines = (Array.isArray(events) ? events : [events]).map(
          (event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`,
        );
        const result = readStream(provider, contextFor(provider, {}), [Buffer.from(lines.join(''))]);
        expect(result.failure === null).toBe(result.phase === 'finished');
        for (const chunk of chunksOf(result.output)) {
          for (const { delta } of chunk.choices) expect(Array.isArray(delta['tool_calls'] ?? [])).toBe(true);
        }
      }),
      runs,
    );
  });

  test('an error has a kind and words', () => {
    fc.assert(
      fc.property(pick(errors), ([{ provider, body, status }, changes]) => {
        const text = JSON.stringify(mutated(body, changes)) ?? '';
        const error = providers[provider].readError(status, {}, Buffer.from(text), 0);
        expect(error.message).not.toBe('');
        expect(error.code === null || error.code !== '').toBe(true);
      }),
      runs,
    );
  });
});

test.each(['text', 7, true, {}, { 0: {} }])(
  'a stored answer whose tool calls are %j is replayed',
  (calls) => {
    const message = { role: 'assistant', content: 'x', tool_calls: calls };
    const stored = {
      id: 'a',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message, finish_reason: 'stop' }],
    };
    checkReplay(stored as unknown as ChatCompletion);
  },
);
