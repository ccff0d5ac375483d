/**
 * Texts that are read as JSON one by one: what reading costs is counted over all of them that belong to one request, or
 * to one answer. A limit for each would be none. The work is what `JSON.parse` is given, in values, digits and escapes.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CompletionAccumulator } from '../../src/core/answer/completion-accumulator.ts';
import { GatewayError } from '../../src/core/errors.ts';
import type { JsonCosts } from '../../src/core/json/json-allowance.ts';
import { tallyEscapes } from '../../src/core/json/json-escapes.ts';
import { tallyJson } from '../../src/core/json/json-tally.ts';
import { mostLongDigits } from '../../src/core/json/long-numbers.ts';
import type { ChatRequest } from '../../src/core/request/chat-request.ts';
import { parseChatBody } from '../../src/http/body/chat-body.ts';
import { jsonAllowanceFor, mostEscapes, mostKeys } from '../../src/http/body/costly-json.ts';
import { eventBounds } from '../../src/providers/json-value.ts';
import { providers } from '../../src/providers/registry.ts';
import { testTables } from '../chat/story.ts';
import { contextFor } from './fixtures.ts';

const most: JsonCosts = { values: 120_000, longDigits: mostLongDigits, escapes: mostEscapes };
const unbounded = {
  values: Number.POSITIVE_INFINITY,
  depth: Number.POSITIVE_INFINITY,
  keys: Number.POSITIVE_INFINITY,
  longDigits: Number.POSITIVE_INFINITY,
};

type Work = { -readonly [K in keyof JsonCosts]: number };

/** What has been parsed since the test began. */
let work: Work;
const parse = JSON.parse;

function costOf(text: string): Work {
  const bytes = Buffer.from(text);
  const tally = tallyJson(bytes, unbounded);
  const escapes = tallyEscapes(bytes, Number.MAX_SAFE_INTEGER)?.weight ?? 0;
  if (typeof tally === 'string') throw new Error('Nothing is beyond no bounds.');
  return { values: tally.values, longDigits: tally.longDigits, escapes };
}

beforeEach(() => {
  work = { values: 0, longDigits: 0, escapes: 0 };
  vi.spyOn(JSON, 'parse').mockImplementation((text, reviver) => {
    const { values, longDigits, escapes } = costOf(text);
    work.values += values;
    work.longDigits += longDigits;
    work.escapes += escapes;
    return parse(text, reviver) as unknown;
  });
});

afterEach(() => vi.restoreAllMocks());

function expectWithin(limits: JsonCosts): void {
  for (const cost of ['values', 'longDigits', 'escapes'] as const)
    expect(work[cost], cost).toBeLessThanOrEqual(limits[cost]);
}

const tables = testTables();
const list = (item: string, count: number): string => `{"a":[${Array(count).fill(item).join(',')}]}`;
const times = (count: number, text: (index: number) => string): string[] =>
  Array.from({ length: count }, (_, i) => text(i));

/** Reads a body as the edge does, and translates it for every vendor; the 422, or null. */
function send(body: object): { readonly param: string | null; readonly code: string | null } | null {
  work = { values: 0, longDigits: 0, escapes: 0 };
  const text = JSON.stringify(body);
  const bytes = Buffer.from(text);
  const allowance = jsonAllowanceFor(bytes);
  expect(allowance.take(bytes, mostKeys)).toBeTypeOf('object');
  let request: ChatRequest;
  try {
    request = parseChatBody(JSON.parse(text), tables, allowance);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.status !== 422) throw error;
    return { param: error.param, code: error.code };
  }
  const own = { ...work };
  for (const provider of Object.values(providers)) {
    // Each is one attempt: only one of them is at work at once.
    work = { ...own };
    provider.translateRequest(request, contextFor(provider.name, {}));
    expectWithin(most);
  }
  return null;
}

/** A conversation in which the assistant called a tool once for each of the texts. */
function conversation(texts: readonly string[], more: object = {}): object {
  const calls = texts.map((text, index) => ({
    id: `c${index}`,
    type: 'function',
    function: { name: 'f', arguments: text },
  }));
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: null, tool_calls: calls.slice(0, 3) },
    { role: 'assistant', content: null, tool_calls: calls.slice(3) },
  ];
  return { model: 'gw/balanced', messages, ...more };
}

describe('the arguments of tool calls', () => {
  test.each<[what: string, texts: () => string[], code: string]>([
    ['values in short texts', () => times(300, () => list('{}', 600)), 'too_many_values'],
    ['values in long texts', () => times(3, () => list('{}', 60_000)), 'too_many_values'],
    [
      'keys that no other object has',
      () => times(300, (n) => `{${times(400, (k) => `"${n}_${k}":0`).join(',')}}`),
      'too_many_values',
    ],
    ['long numbers', () => times(19, () => list('0.12345678901234567890', 3_000)), 'inexact_number'],
    [
      'long numbers in short texts',
      () => times(400, () => list('0.1234567890123456789', 150)),
      'inexact_number',
    ],
    ['numbers of many digits', () => times(10, () => list('1'.repeat(900), 130)), 'inexact_number'],
    ['short numbers of long exponents', () => times(19, () => list('1e100', 3_000)), 'inexact_number'],
    [
      'halves of characters',
      () => times(4, () => list(`"${'\\ud800'.repeat(60_000)}"`, 1)),
      'too_many_escapes',
    ],
  ])('%s are refused by name when all of them together are too many', (_what, texts, code) => {
    const refused = send(conversation(texts()));
    expect(refused?.code).toBe(code);
    expect(refused?.param).toMatch(/^messages\[[12]\]\.tool_calls\[\d+\]\.function\.arguments$/);
    expectWithin(most);
  });

  test.each<[what: string, texts: string[], more: object]>([
    ['values', times(2, () => list('{}', 20_000)), { metadata: { a: Array(50_000).fill(0) } }],
    [
      'long numbers',
      times(2, () => list('0.1234567890123456789', 15_000)),
      { metadata: { a: Array(25_000).fill(0.5e-100) } },
    ],
  ])('%s of the body count too', (_what, texts, { metadata, ...more }: { metadata?: unknown }) => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: metadata } }];
    expect(send(conversation(texts, { ...more, tools }))?.param).toContain('.function.arguments');
    expect(send(conversation(texts.slice(1), { ...more, tools }))).toBeNull();
  });

  test.each<[what: string, texts: string[]]>([
    ['values', times(50, () => list('{}', 600))],
    ['long numbers', times(12, () => list('0.12345678901234567890', 3_000))],
    ['escapes', times(10, () => list('"\\n\\ud800"', 2_000))],
    ['text that is no object, which is not read', times(20, () => `[${'0,'.repeat(10_000)}0]`)],
    ['digits in texts', times(20, () => list(`"${'1'.repeat(100_000)}"`, 1))],
  ])('as many as anybody sends are taken: %s', (_what, texts) => {
    expect(send(conversation(texts))).toBeNull();
  });
});

const chunk = (more: string): Buffer =>
  Buffer.from(
    `data: {"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]${more}}\n\n`,
  );

describe('the chunks of a stream', () => {
  const digits = `,"timings":${list('0.12345678901234567890', 4_000)}`;

  test('are put together for the cache with one allowance for all', () => {
    const accumulator = new CompletionAccumulator(1024 * 1024);
    for (let count = 0; count < 30; count += 1) accumulator.push(chunk(digits));
    expect(accumulator.complete(null)).toBeNull();
    expectWithin({ ...most, values: Number.POSITIVE_INFINITY });
  });

  test.each(['openai', 'anthropic'] as const)('are read one by one, each within its bounds: %s', (name) => {
    const translator = providers[name].streamTranslator(contextFor(name, {}));
    for (let count = 0; count < 30; count += 1) {
      work = { values: 0, longDigits: 0, escapes: 0 };
      translator.push(chunk(digits));
      expectWithin({ ...eventBounds, escapes: 0 });
    }
    expect(translator.failure).toBeNull();
  });
});
