import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../src/core/request/chat-request.ts';
import { chatRequestSchema } from '../../src/core/request/chat-request.ts';
import { parseJson } from '../../src/providers/json-value.ts';
import { providers } from '../../src/providers/registry.ts';
import { contextFor } from './fixtures.ts';
import { readStream } from './read-stream.ts';

const json = fc.jsonValue({ maxDepth: 3 });
const deep = `${'{"a":['.repeat(20_000)}${']}'.repeat(20_000)}`;

/** Objects that look a little like what vendors send, so that more than the first check is reached. */
const answerLike = fc.record(
  {
    id: json,
    object: json,
    created: json,
    model: json,
    usage: fc.oneof(
      json,
      fc.dictionary(fc.constantFrom('prompt_tokens', 'completion_tokens', 'input_tokens'), json),
    ),
    choices: fc.array(
      fc.oneof(
        json,
        fc.record(
          {
            index: json,
            finish_reason: json,
            message: fc.oneof(json, fc.dictionary(fc.constantFrom('content', 'tool_calls', 'role'), json)),
            delta: fc.oneof(
              json,
              fc.record({
                content: json,
                tool_calls: fc.array(fc.oneof(json, fc.record({ index: json, function: json }))),
              }),
            ),
          },
          { requiredKeys: [] },
        ),
      ),
    ),
    type: fc.constantFrom(
      'message_start',
      'content_block_start',
      'content_block_delta',
      'message_delta',
      'x',
    ),
    index: json,
    content: json,
    message: json,
    content_block: fc.oneof(
      json,
      fc.record({ type: fc.constantFrom('text', 'tool_use'), id: json, input: json }),
    ),
    delta: fc.oneof(
      json,
      fc.record({ type: fc.constantFrom('text_delta', 'input_json_delta'), partial_json: json }),
    ),
  },
  { requiredKeys: [] },
);

const part = fc.oneof(
  fc.record({ type: fc.constant('text'), text: json }),
  fc.record({ type: fc.constant('image_url'), image_url: json }),
  fc.record({ type: fc.string() }),
);
const message = fc.record(
  {
    role: fc.constantFrom('system', 'user', 'assistant', 'tool'),
    content: fc.oneof(fc.string(), fc.array(part), fc.constant(null)),
    tool_calls: fc.oneof(json, fc.array(fc.record({ id: json, function: json }))),
    tool_call_id: json,
    gateway: json,
    parsed: json,
    refusal: json,
  },
  { requiredKeys: ['role'] },
);
const request = fc.record(
  {
    messages: fc.array(message, { minLength: 1 }),
    tools: fc.array(fc.dictionary(fc.constantFrom('type', 'function'), json)),
    tool_choice: fc.oneof(fc.string(), fc.dictionary(fc.string(), json)),
    response_format: fc.record({ type: fc.string(), json_schema: json }),
    stop: fc.oneof(fc.string(), fc.array(fc.string())),
    stream: fc.boolean(),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    user: fc.string(),
  },
  { requiredKeys: ['messages'] },
);

/** The formats; the other providers share the first one's code. */
const formats = ['openai', 'anthropic'] as const;
/** Each run builds whole answers and streams; more of them find no more within a test's time. */
const runs = { numRuns: 60 };

describe.each(formats)('%s and input made to hurt', (name) => {
  const provider = providers[name];
  const context = contextFor(name, {});

  test('any valid request becomes JSON without our own block, and is not changed itself', () => {
    fc.assert(
      fc.property(request, (given) => {
        const parsed = chatRequestSchema.parse({ model: 'gw/cheap', ...given }) as ChatRequest;
        const before = JSON.stringify(parsed);
        const sent = JSON.parse(provider.translateRequest(parsed, context).body) as {
          model: string;
          messages: Record<string, unknown>[];
        };
        expect(sent.model).toBe('some-model');
        for (const translated of sent.messages) expect(translated).not.toHaveProperty('gateway');
        expect(JSON.stringify(parsed)).toBe(before);
      }),
      runs,
    );
  });

  test('no answer and no error body makes it throw', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          answerLike.map((value) => JSON.stringify(value)),
          fc.json(),
          fc.string(),
        ),
        (body) => {
          const answer = provider.translateAnswer(Buffer.from(body), context);
          if (answer.kind === 'answer') expect(JSON.parse(answer.json)).not.toHaveProperty('gateway');
          expect(provider.readError(500, {}, Buffer.from(body), 0).message).not.toBe('');
        },
      ),
      runs,
    );
  });

  test('no stream makes it throw, or end without saying how', () => {
    const event = answerLike.map((value) => Buffer.from(`data: ${JSON.stringify(value)}\n\n`));
    const rubbish = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(
        fc.array(fc.oneof({ weight: 4, arbitrary: event }, { weight: 1, arbitrary: rubbish })),
        (pieces) => {
          const result = readStream(name, context, pieces);
          expect(result.failure === null).toBe(result.phase === 'finished');
          expect(readStream(name, context, [Buffer.concat(pieces)])).toEqual(result);
        },
      ),
      runs,
    );
  });

  test('nesting without end is unreadable, not a stack overflow', () => {
    expect(provider.translateAnswer(Buffer.from(`{"choices":${deep}}`), context).kind).toBe('unreadable');
    expect(provider.readError(500, {}, Buffer.from(deep), 0).kind).toBe('upstream-failed');
    const events = [Buffer.from(`data: {"error":${deep}}\n\n`)];
    expect(readStream(name, context, events).failure?.code).toBe('stream_unreadable');
  });
});

test('more parts, fields and calls than a call takes arguments are translated by anthropic', () => {
  const many = 200_000;
  const parts = Array.from({ length: many }, () => ({ type: 'text', text: 'a' }));
  const fields = Object.fromEntries(parts.map((_part, index) => [`k${index}`, 1]));
  const calls = parts.map(() => ({ id: 'a', function: { name: 'f', arguments: '{}' } }));
  const messages = [
    { role: 'system', content: parts },
    { role: 'user', content: parts, ...fields },
    { role: 'assistant', content: null, tool_calls: calls },
  ];
  const sent = providers.anthropic.translateRequest(
    { model: 'gw/cheap', messages } as unknown as ChatRequest,
    contextFor('anthropic', {}),
  );
  const body = JSON.parse(sent.body) as { system: unknown[]; messages: { content: unknown[] }[] };
  expect([body.system.length, ...body.messages.map(({ content }) => content.length)]).toEqual([
    many,
    many,
    many,
  ]);
  expect(sent.dropped).toHaveLength(many);
});

describe('JSON', () => {
  test('keeps its depth apart from brackets in its strings', () => {
    const text = JSON.stringify({ a: '[{'.repeat(5000), b: '\\"[[[', c: ['\\', '"'] });
    expect(parseJson(text)).toEqual(JSON.parse(text));
    expect(parseJson(`${'['.repeat(1000)}${']'.repeat(1000)}`)).toBeDefined();
    expect(parseJson(`${'['.repeat(1001)}${']'.repeat(1001)}`)).toBeUndefined();
  });
});
