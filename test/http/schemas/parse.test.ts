import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { registerKeySchema } from '../../../src/core/account/account-requests.ts';
import { pathText } from '../../../src/core/path-text.ts';
import { chatRequestSchema } from '../../../src/core/request/chat-request.ts';
import { changeUserSchema } from '../../../src/http/admin/operator-schemas.ts';
import { innermostIssue, parseOrThrow, shownParam } from '../../../src/http/schemas/parse.ts';
import { thrown } from '../thrown.ts';

describe('a parsed body', () => {
  const schema = z.strictObject({ list: z.array(z.strictObject({ n: z.number() })) });

  test.each<[name: string, value: unknown, param: string | null, code: string | null]>([
    ['a wrong type, by its path', { list: [{ n: 1 }, { n: 'x' }] }, 'list[1].n', null],
    ['an unknown field, by its path', { list: [{ n: 1, m: 2 }] }, 'list[0].m', 'unknown_field'],
    ['an unknown top-level field', { list: [], more: 1 }, 'more', 'unknown_field'],
    ['something that is no object', 'text', null, 'invalid_json'],
    ['nothing', undefined, null, 'invalid_json'],
    ['a list', [], null, 'invalid_json'],
  ])('names %s', (_name, value, param, code) => {
    const error = thrown(() => parseOrThrow(schema, value));
    expect([error.status, error.param, error.code]).toEqual([422, param, code]);
  });

  const parts = (...content: unknown[]): object => ({
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'user', content },
    ],
  });
  const text = { type: 'text', text: 'Hi' };

  test.each<[name: string, fields: object, param: string, message: string]>([
    ['a part that is none', parts(text, 'Hi'), 'messages[1].content[1]', 'expected object'],
    [
      'a part without a type',
      parts(text, text, { text: 'Hi' }),
      'messages[1].content[2].type',
      'expected string',
    ],
    ['a part of a wrong type', parts({ type: 5 }, 5), 'messages[1].content[0].type', 'expected string'],
    ['a stop that is no text', { stop: ['a', 1] }, 'stop[1]', 'expected string'],
    ['stops of another kind', { stop: 5 }, 'stop', 'expected string or array'],
    ['stops in an object', { stop: { a: 1 } }, 'stop', 'expected string or array'],
    [
      'content of another kind',
      { messages: [{ role: 'user', content: { a: 1 } }] },
      'messages[0].content',
      'expected string or array',
    ],
    ['a choice of another kind', { tool_choice: [] }, 'tool_choice', 'expected string or object'],
  ])('names what is wrong inside where more than one kind may stand: %s', (_name, fields, param, message) => {
    const body = { model: 'gw/cheap', messages: [{ role: 'user', content: 'Hi' }], ...fields };
    const error = thrown(() => parseOrThrow(chatRequestSchema, body));
    expect([error.status, error.param]).toEqual([422, param]);
    expect(error.message).toContain(message);
  });

  test('names nothing inside where more than one kind has come as far', () => {
    const either = z.object({ a: z.union([z.array(z.string()), z.array(z.boolean())]) });
    expect(thrown(() => parseOrThrow(either, { a: [1] })).param).toBe('a');
    const nested = z.object({ a: z.union([z.string(), z.array(z.union([z.null(), z.array(z.string())]))]) });
    expect(thrown(() => parseOrThrow(nested, { a: [null, ['x', 1]] })).param).toBe('a[1][1]');
  });

  test('is returned when it fits', () => {
    expect(parseOrThrow(schema, { list: [{ n: 1 }] })).toEqual({ list: [{ n: 1 }] });
  });

  test('has paths as a person writes them, cut when a client made them long', () => {
    expect(pathText(['a', 0, 'b', 'c', 12])).toBe('a[0].b.c[12]');
    expect(shownParam('x'.repeat(64))).toHaveLength(64);
    expect(shownParam('x'.repeat(65))).toBe(`${'x'.repeat(64)}…`);
  });
});

describe('what is wrong first', () => {
  const some = fc.constantFrom<unknown>(
    1,
    -1,
    'user',
    '',
    null,
    undefined,
    [],
    {},
    [1],
    ['a', 2],
    'india',
    'openai',
  );
  const part = fc.record({ type: some, text: some }, { requiredKeys: [] });
  const message = fc.record(
    {
      role: fc.constantFrom<unknown>('user', 'robot', 1),
      content: fc.oneof(some, fc.array(fc.oneof(some, part))),
    },
    { requiredKeys: [] },
  );
  const bodies = {
    chat: fc.record(
      {
        model: some,
        messages: fc.oneof(some, fc.array(fc.oneof(some, message))),
        tools: fc.oneof(some, fc.array(some)),
        stop: some,
        temperature: some,
        seed: some,
        stream_options: some,
        tool_choice: some,
        odd: some,
      },
      { requiredKeys: [] },
    ),
    key: fc.record(
      { provider: some, api_key: some, label: some, base_url: some, odd: some },
      { requiredKeys: [] },
    ),
    change: fc.record(
      {
        disabled: some,
        residency: some,
        odd: some,
        limits: fc.oneof(some, fc.record({ streams: some, odd: some })),
      },
      { requiredKeys: [] },
    ),
  };
  const schemas = { chat: chatRequestSchema, key: registerKeySchema, change: changeUserSchema };

  test.each(['chat', 'key', 'change'] as const)(
    'in a body of %s is what zod names first of all that is',
    (of) => {
      const schema: z.ZodType = schemas[of];
      fc.assert(
        fc.property(bodies[of], (value) => {
          const whole = schema.safeParse(value);
          if (whole.success) {
            expect(parseOrThrow(schema, value)).toEqual(whole.data);
            return;
          }
          const error = thrown(() => parseOrThrow(schema, value));
          const [first] = whole.error.issues;
          const issue = first && innermostIssue(first);
          const keys = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
          expect(error.param).toBe(pathText([...(issue?.path ?? []), ...keys]) || null);
          if (keys.length > 0) return;
          const words = `${error.param}: ${issue?.message}`;
          // What a union takes, which zod does not say, stands behind its words.
          const said = issue?.code === 'invalid_union' ? error.message.slice(0, words.length) : error.message;
          expect(said).toBe(words);
        }),
      );
    },
  );
});
