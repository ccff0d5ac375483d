import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CacheKeyParts } from '../../../src/core/request/cache-key.ts';
import { cachedFor, cacheKey } from '../../../src/core/request/cache-key.ts';
import type { ChatOptions } from '../../../src/core/request/chat-call.ts';
import type { ChatRequest } from '../../../src/core/request/chat-request.ts';

const request: ChatRequest = {
  model: 'gw/balanced',
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'text', text: 'Hello' }], name: 'ann' },
  ],
  temperature: 0.5,
  tools: [{ type: 'function', function: { name: 'f', parameters: { a: 1, b: 2 } } }],
};
const keyOf = (some: CacheKeyParts): string => cacheKey(cachedFor(some));

const options: ChatOptions = { cacheTtlSeconds: 60, override: null, residency: null, timeoutMs: null };

const parts: CacheKeyParts = {
  userId: 'u1',
  options,
  mode: 'gw/balanced',
  target: 'balanced',
  request,
};
const base = keyOf(parts);

test('is a version and 64 hex digits', () => {
  expect(base).toMatch(/^v4:[0-9a-f]{64}$/);
});

describe('changes with', () => {
  const withRequest = (change: Record<string, unknown>): CacheKeyParts => ({
    ...parts,
    request: { ...request, ...change } as ChatRequest,
  });
  test.each<[string, CacheKeyParts]>([
    ['the user', { ...parts, userId: 'u2' }],
    ['the mode', { ...parts, mode: 'override' }],
    ['the target', { ...parts, target: 'openai:gpt@key' }],
    ['the key of an override', { ...parts, target: 'openai:gpt@key2' }],
    ['the model', withRequest({ model: 'gw/cheap' })],
    ['a message more', withRequest({ messages: [...request.messages, { role: 'user', content: 'x' }] })],
    ['the order of messages', withRequest({ messages: [...request.messages].reverse() })],
    ['a field of a message', withRequest({ messages: [request.messages[0], { role: 'user', name: 'bob' }] })],
    ['null content', withRequest({ messages: [{ role: 'user', content: null }] })],
    ['absent content', withRequest({ messages: [{ role: 'user' }] })],
    ['the temperature', withRequest({ temperature: 0.6 })],
    ['a number spelled as text', withRequest({ temperature: '0.5' })],
    ['max_tokens', withRequest({ max_tokens: 10 })],
    ['max_completion_tokens', withRequest({ max_completion_tokens: 10 })],
    ['n', withRequest({ n: 2 })],
    ['the end user', withRequest({ user: 'end-user' })],
    ['a single stop', withRequest({ stop: 'a' })],
    ['a list of one stop', withRequest({ stop: ['a'] })],
    ['tools', withRequest({ tools: [] })],
    ['a passthrough field', withRequest({ top_k: 5 })],
    ['the response format', withRequest({ response_format: { type: 'json_object' } })],
  ])('%s', (_what, other) => {
    expect(keyOf(other)).not.toBe(base);
  });
});

test('tells a number that is kept as it was written from every other value', () => {
  const long = '12345678901234567890';
  const values = [
    JSON.rawJSON(long),
    JSON.rawJSON(`${long.slice(0, -1)}1`),
    Number(long),
    long,
    { rawJSON: long },
  ];
  const keys = values.map((maximum) => keyOf({ ...parts, request: { ...request, tools: [{ maximum }] } }));
  expect(new Set(keys).size).toBe(values.length);
});

test('is the one that answers of earlier releases are stored under', () => {
  const plain = { ...parts, request: { model: 'gw/balanced', messages: [{ role: 'user', content: 'x' }] } };
  const india = { ...plain, options: { ...options, residency: 'india' } } as const;
  expect([plain, india].map((one) => cachedFor(one as CacheKeyParts))).toEqual([
    'v4\n["u1",null,"gw/balanced","balanced",{"messages":[{"content":"x","role":"user"}],"model":"gw/balanced"}]',
    'v4\n["u1","india","gw/balanced","balanced",{"messages":[{"content":"x","role":"user"}],"model":"gw/balanced"}]',
  ]);
});

/** Every option there is: whether it changes the answer, and another value of it. */
const everyOption: { readonly [Name in keyof ChatOptions]: readonly [boolean, ChatOptions[Name]] } = {
  residency: [true, 'india'],
  override: [false, { provider: 'openai', selector: null, model: 'gpt' }],
  timeoutMs: [false, 5000],
  cacheTtlSeconds: [false, 600],
};

test.each(Object.entries(everyOption))(
  'of the option %s a part where it changes the answer',
  (name, [changes, value]) => {
    const other = keyOf({ ...parts, options: { ...options, [name]: value } });
    expect(other !== base).toBe(changes);
  },
);

test('does not change with how the answer is delivered', () => {
  const streamed = { ...request, stream: true, stream_options: { include_usage: true } };
  expect(keyOf({ ...parts, request: streamed })).toBe(base);
});

test('no text of one part can stand for another part', () => {
  fc.assert(
    fc.property(
      fc.tuple(fc.string(), fc.string(), fc.string()),
      fc.tuple(fc.string(), fc.string(), fc.string()),
      (a, b) => {
        const key = ([userId, mode, target]: [string, string, string]) =>
          keyOf({ ...parts, userId, mode, target });
        expect(key(a) === key(b)).toBe(a.every((text, index) => text === b[index]));
      },
    ),
  );
});

/** The same value with the keys of every object in reverse order of insertion. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reversed(member)]),
  );
}

const json = fc.jsonValue();

test('does not change with the order of keys, at any depth', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), json), (fields) => {
      const one = { ...fields, ...request } as ChatRequest;
      const two = reversed(one) as ChatRequest;
      expect(keyOf({ ...parts, request: two })).toBe(keyOf({ ...parts, request: one }));
    }),
  );
});

test('differs for any two different values of a field', () => {
  fc.assert(
    fc.property(json, json, (a, b) => {
      const key = (value: unknown) =>
        keyOf({ ...parts, request: { ...request, extra: value } as ChatRequest });
      // -0 is sent upstream as 0.
      const same = JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
      expect(key(a) === key(b)).toBe(same);
    }),
  );
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  // A list of pairs, since integer-like keys would be reordered by an object.
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return { pairs: entries.map(([key, member]) => [key, sorted(member)]) };
}
