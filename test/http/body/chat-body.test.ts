import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../../src/core/errors.ts';
import type { ChatRequest } from '../../../src/core/request/chat-request.ts';
import type { RoutingTables } from '../../../src/core/tables/tables.ts';
import { parseChatBody } from '../../../src/http/body/chat-body.ts';
import { jsonAllowanceFor } from '../../../src/http/body/costly-json.ts';
import { testTables } from '../../chat/story.ts';
import { watchedItems } from '../../core/watched-items.ts';

const tables = testTables({
  limits: { messages: 3, message_parts: 4, stop_sequences: 2, body_depth: 8 },
  chat: { passthrough_fields: ['logit_bias'] },
});
const user = { role: 'user', content: 'hi' };
const part = { type: 'text', text: 'a' };
const body = (fields: object = {}): object => ({ model: 'gw/cheap', messages: [user], ...fields });

function parse(value: unknown, of: RoutingTables): ChatRequest {
  return parseChatBody(value, of, jsonAllowanceFor(Buffer.alloc(0)));
}

function refusal(value: unknown, of: RoutingTables = tables): [number, string, string | null, string | null] {
  try {
    parse(value, of);
  } catch (error) {
    if (error instanceof GatewayError) return [error.status, error.type, error.param, error.code];
    throw error;
  }
  throw new Error('was accepted');
}

/** Lists within lists: `levels` of them. */
function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}

describe('a chat body', () => {
  test('is handed on as it came, undefined fields left out', () => {
    const sent = body({ temperature: 0, stop: ['a', 'b'], tools: [{ type: 'function', odd: nested(2) }] });
    expect(parse(sent, tables)).toEqual(sent);
  });

  test.each([[null], [undefined], [[]], ['text'], [1], [true]])('%j is refused', (value) => {
    expect(refusal(value)).toEqual([422, 'invalid_request_error', null, 'invalid_json']);
  });

  test.each<[name: string, fields: object, param: string | null, code: string | null]>([
    ['with an unknown field', { logprobs: true }, 'logprobs', 'unknown_field'],
    ['with a field that every object has', { constructor: 1 }, 'constructor', 'unknown_field'],
    ['with a prototype', JSON.parse('{"__proto__": {}}') as object, '__proto__', 'unknown_field'],
    ['with a field of absurd length', { ['x'.repeat(100)]: 1 }, `${'x'.repeat(64)}…`, 'unknown_field'],
    ['with too many messages', { messages: [user, user, user, user] }, 'messages', 'too_many_entries'],
    [
      'with too many content parts',
      {
        messages: [
          user,
          { role: 'user', content: [part, part] },
          { role: 'user', content: [part, part, part] },
        ],
      },
      'messages[2]',
      'too_many_entries',
    ],
    [
      'with too many further fields of messages',
      { messages: [{ ...user, a: 1, b: 2, c: 3, d: 4, e: 5 }] },
      'messages[0]',
      'too_many_entries',
    ],
    [
      'with too many of both',
      { messages: [{ role: 'user', content: [part, part, part], a: 1, b: 2 }] },
      'messages[0]',
      'too_many_entries',
    ],
    ['with too many tools', { tools: [{}, {}, {}, {}] }, 'tools', 'too_many_entries'],
    ['with too many stop sequences', { stop: ['a', 'b', 'c'] }, 'stop', 'too_many_entries'],
    ['nested too deep in a known field', { response_format: { type: 'x', y: nested(7) } }, null, 'too_deep'],
    ['nested too deep in a field let through', { logit_bias: nested(8) }, null, 'too_deep'],
    ['without messages', { messages: [] }, 'messages', null],
    ['with a bad role', { messages: [user, { role: 'robot' }] }, 'messages[1].role', null],
    ['with a wrong type', { stream: 1 }, 'stream', null],
    ['with a bad tool', { tools: ['x'] }, 'tools[0]', null],
    [
      'with both names of one limit',
      { max_tokens: 1, max_completion_tokens: 1 },
      'max_completion_tokens',
      null,
    ],
  ])('%s is refused by name', (_name, fields, param, code) => {
    expect(refusal(body({ model: 'gw/cheap', ...fields }))).toEqual([
      422,
      'invalid_request_error',
      param,
      code,
    ]);
  });

  test.each([
    ['9007199254740993', '9007199254740992'],
    ['-9007199254740993', '-9007199254740992'],
    // JSON's numbers round to the next one up, which is no int64 any more.
    ['9223372036854775807', '9223372036854775000'],
    ['-9223372036854775808', '-9223372036854775000'],
  ])('may hold the seed %s, an int64, as far as a number can', (given, sent) => {
    const request = parse(body(JSON.parse(`{"seed":${given}}`) as object), tables);
    expect(JSON.stringify(request.seed)).toBe(sent);
  });

  test.each(['1.5', '1e19', '-1e19', '1e400', '"1"', 'true'])('may not hold the seed %s', (given) => {
    expect(refusal(body(JSON.parse(`{"seed":${given}}`) as object)).slice(0, 3)).toEqual([
      422,
      'invalid_request_error',
      'seed',
    ]);
  });

  test('just within its bounds is accepted', () => {
    const fields = {
      messages: [user, { role: 'user', content: [part, part] }, { ...user, name: 'x', odd: 1 }],
      stop: ['a', 'b'],
      tools: [{}, {}, {}],
      logit_bias: nested(7),
    };
    expect(parse(body(fields), tables)).toEqual(body(fields));
  });

  test.each([{ include_usage: null }, { include_usage: null, include_obfuscation: false }])(
    'may hold the stream options %j: null is as if it were left out',
    (options) => {
      const { include_usage: _null, ...rest } = options;
      expect(parse(body({ stream_options: options }), tables).stream_options).toEqual(rest);
    },
  );

  test('lets fields through that the operator names, unvalidated', () => {
    expect(parse(body({ logit_bias: { 50256: -100 } }), tables)['logit_bias']).toEqual({
      50256: -100,
    });
    expect(refusal(body({ logit_bias: {} }), testTables())[3]).toBe('unknown_field');
  });

  test('of any depth is judged without overflowing the stack', () => {
    expect(refusal(body({ tools: [{ deep: nested(100_000) }] }))[3]).toBe('too_deep');
  });

  test('of any shape is read or refused with 422, and nothing else happens', () => {
    const fields = fc.record(
      {
        model: fc.anything(),
        messages: fc.anything(),
        stop: fc.anything(),
        tools: fc.anything(),
        n: fc.anything(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fields, fc.jsonValue()), (value) => {
        try {
          parse(value, tables);
        } catch (error) {
          expect((error as GatewayError).status).toBe(422);
        }
      }),
    );
  });
});

describe('validation of a chat body', () => {
  const developers = testTables({ chat: { developer_role: true } });

  type Row = [
    what: string,
    item: [name: string, fields: object],
    (items: readonly object[]) => object,
    param: string,
  ];
  const text: Row[1] = ['type', {}];
  test.each<Row>([
    [
      'messages of bad content',
      ['role', { content: 5 }],
      (messages) => ({ messages: [{ content: 5 }, ...messages] }),
      'messages[0].role',
    ],
    [
      'messages of bad parts',
      ['role', { content: [1] }],
      (messages) => ({ messages: [{ ...user, content: [1] }, ...messages] }),
      'messages[0].content[0]',
    ],
    [
      'messages behind a good one',
      ['role', { content: 5 }],
      (messages) => ({ messages: [user, 1, ...messages] }),
      'messages[1]',
    ],
    [
      'content parts',
      text,
      (parts) => ({ messages: [{ ...user, content: [{}, ...parts] }] }),
      'messages[0].content[0].type',
    ],
    ['tools', text, (tools) => ({ tools: [1, ...tools] }), 'tools[0]'],
    ['tools behind bad messages', text, (tools) => ({ messages: [1], tools }), 'messages[0]'],
    [
      'tools behind a bad number',
      text,
      (tools) => ({ temperature: 3.5, max_tokens: '1', tools }),
      'temperature',
    ],
  ])('never looks at %s behind the first mistake', (_what, [name, fields], given, param) => {
    for (const of of [testTables(), developers]) {
      const { looks, items } = watchedItems(name, fields);
      expect(refusal(body(given(items)), of)[2]).toBe(param);
      // By the look at the depth of the body.
      expect(looks).toEqual([1, 1, 1]);
    }
  });

  test.each<[what: string, item: Row[1], given: Row[2]]>([
    ['messages', ['role', { content: [part] }], (messages) => ({ messages })],
    ['content parts', text, (parts) => ({ messages: [{ ...user, content: parts }] })],
    ['tools', text, (tools) => ({ tools })],
  ])('looks once at %s that are good', (_what, [name, fields], given) => {
    const { looks, items } = watchedItems(name, fields);
    parse(body(given(items)), testTables());
    // And once at their depth; the first message is looked at for being plain.
    expect(looks).toEqual(name === 'role' ? [3, 2, 2] : [2, 2, 2]);
  });
});

describe('the role developer', () => {
  const messages = [{ role: 'developer', content: 'Be brief.' }, user];

  test('is refused unless the tables switch it on', () => {
    expect(refusal({ model: 'gw/cheap', messages })).toEqual([
      422,
      'invalid_request_error',
      'messages[0].role',
      null,
    ]);
  });

  test('is a role like the others where they do', () => {
    const on = testTables({ chat: { developer_role: true } });
    expect(parse({ model: 'gw/cheap', messages }, on).messages).toEqual(messages);
    const unknown = { model: 'gw/cheap', messages: [{ role: 'function', content: 'x' }] };
    expect(refusal(unknown, on)[2]).toBe('messages[0].role');
  });
});
