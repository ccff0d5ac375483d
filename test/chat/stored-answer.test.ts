import { describe, expect, test } from 'vitest';
import type { StoredAnswer } from '../../src/chat/stored-answer.ts';
import { decodeStoredAnswer, encodeStoredAnswer, storedAnswer } from '../../src/chat/stored-answer.ts';
import type { ChatCompletion } from '../../src/core/answer/chat-completion.ts';
import { noUsage } from '../../src/core/answer/usage.ts';
import type { Candidate } from '../../src/core/candidate.ts';
import { callOf, storedText } from './story.ts';

const stored = storedText('{"id":"x"}');

describe('what may be stored', () => {
  const answered = (indexes: readonly number[]): ChatCompletion => ({
    id: 'a',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: indexes.map((index) => ({
      index,
      message: { role: 'assistant', content: 'x' },
      finish_reason: 'stop',
    })),
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  });

  test.each<[n: number | undefined, indexes: readonly number[], may: boolean]>([
    [undefined, [0], true],
    [1, [0], true],
    [2, [0, 1], true],
    [2, [1, 0], true],
    [undefined, [1], false],
    [undefined, [0, 1], false],
    [2, [0], false],
    [2, [0, 0], false],
    [2, [0, 2], false],
    [2, [0, 1, 2], false],
    [2, [0, 1, 1], false],
    [1, [-1], false],
  ])('of n %s: choices %j: %s', (n, indexes, may) => {
    const call = callOf({ request: n === undefined ? {} : { n } });
    const completion = answered(indexes);
    const candidate = { provider: 'openai', model: 'm' } as Candidate;
    const json = JSON.stringify(completion);
    const entry = storedAnswer(call, candidate, completion, { json, bytes: json.length }, noUsage, 0n);
    expect(entry !== null).toBe(may);
  });

  test.each<[cost: bigint, may: boolean]>([
    [0n, true],
    [BigInt(Number.MAX_SAFE_INTEGER), true],
    [BigInt(Number.MAX_SAFE_INTEGER) + 1n, false],
  ])('that cost %s micro-dollars: %s', (cost, may) => {
    const completion = answered([0]);
    const candidate = { provider: 'openai', model: 'm' } as Candidate;
    const json = JSON.stringify(completion);
    const entry = storedAnswer(callOf(), candidate, completion, { json, bytes: json.length }, noUsage, cost);
    expect(entry !== null).toBe(may);
  });
});

const written = (change: Readonly<Record<string, unknown>>): string =>
  encodeStoredAnswer({ ...stored, ...change } as StoredAnswer).toString();

describe('a stored answer', () => {
  test('is read as it was written', () => {
    expect(decodeStoredAnswer(encodeStoredAnswer(stored))).toEqual(stored);
  });

  test('keeps every character of its text', () => {
    const json = '{"id":"नमस्ते 🙂","text":"a\\nb"}\n';
    const answer = { ...stored, completion: { json, bytes: Buffer.byteLength(json) } };
    expect(decodeStoredAnswer(encodeStoredAnswer(answer))).toEqual(answer);
  });

  test.each<[name: string, bytes: string]>([
    ['no JSON', '{\n{}'],
    ['nothing', ''],
    ['null', 'null\n{}'],
    ['an answer without its facts', '{"id":"x"}'],
    ['facts without their values', written({ values: null })],
    ['facts without their cost', written({ costMicroUsd: undefined })],
    ['facts with a negative cost', written({ costMicroUsd: -1 })],
    ['facts with a cost of no sane size', written({ costMicroUsd: 2 ** 53 })],
    ['facts of a provider that is none', written({ provider: 'other' })],
    ['facts without their request', written({ requestId: null })],
    ['facts of another version', written({ usage: { input: 1 } })],
    ['facts with a count too many', written({}).replace(']', ',0]')],
    ['facts with a count that is none', written({ usage: { ...noUsage, outputTokens: -1 } })],
    ['one text, as earlier versions wrote it', JSON.stringify(stored)],
    ['an object of facts, as earlier versions wrote it', `${JSON.stringify(stored)}\n{}`],
  ])('that is %s is none', (_name, bytes) => {
    expect(decodeStoredAnswer(Buffer.from(bytes))).toBeNull();
  });
});
