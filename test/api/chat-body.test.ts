/** SPEC 4.5: the body fields of a chat request, each bound inclusive and one step outside. */
import { describe, expect, test } from 'vitest';
import { chat, chatBody, chatOk, chatPath } from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import { sendRaw } from '../harness/gateway/http-client.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';

const gateway = useGateway({ tables: tables({ chat: { passthrough_fields: ['reasoning_effort'] } }) });
const user = useUser(gateway);

const sent = () => gateway.vendors.openai.ledger.at(-1)?.body ?? {};

const weatherTool = {
  type: 'function',
  function: {
    name: 'weather',
    strict: true,
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  },
};

describe('an accepted value', () => {
  test.each<[string, unknown]>([
    ['temperature', 0],
    ['temperature', 0.7],
    ['temperature', 2],
    ['temperature', 2.0],
    ['top_p', 0],
    ['top_p', 1],
    ['presence_penalty', -2],
    ['presence_penalty', 2],
    ['frequency_penalty', -2],
    ['frequency_penalty', 2],
    ['seed', 0],
    ['seed', -1],
    ['seed', 2_147_483_648],
    ['n', 1],
    ['n', 10],
    ['user', 'customer-1'],
    ['user', ''],
    ['tools', [weatherTool]],
    ['response_format', { type: 'json_object' }],
    ['response_format', {}],
    ['response_format', { type: 5 }],
    [
      'response_format',
      { type: 'json_schema', json_schema: { name: 'x', strict: true, schema: { type: 'object' } } },
    ],
  ])('reaches the provider unchanged: %s = %j', async (field, value) => {
    const response = await chat(user.client, { [field]: value });
    expect(response.status, response.text).toBe(200);
    expect(sent()[field]).toEqual(value);
  });

  test.each([
    ['max_tokens', 1],
    ['max_tokens', 100_000],
    ['max_completion_tokens', 1],
    ['max_completion_tokens', 500],
  ])('reaches openai under its newer name: %s = %d', async (field, value) => {
    const response = await chat(user.client, { [field]: value });
    expect(response.status, response.text).toBe(200);
    expect(sent()['max_completion_tokens']).toBe(value);
    expect(sent()).not.toHaveProperty('max_tokens');
  });

  test.each([['one'], [['one', 'two']]])('of stop may be %j', async (stop) => {
    const response = await chat(user.client, { stop });
    expect(response.status, response.text).toBe(200);
    expect([sent()['stop']].flat()).toEqual([stop].flat());
  });

  test.each(['auto', 'none', 'required', { type: 'function', function: { name: 'weather' } }])(
    'of tool_choice may be %j',
    async (choice) => {
      const response = await chat(user.client, {
        tools: [weatherTool],
        tool_choice: choice,
        parallel_tool_calls: false,
      });
      expect(response.status, response.text).toBe(200);
      expect(sent()).toMatchObject({ tool_choice: choice, parallel_tool_calls: false });
    },
  );

  test('of stream may be an explicit false', async () => {
    const response = await chat(user.client, { stream: false });
    expect(response.status).toBe(200);
    expect(response.headers['content-type']).toMatch(/^application\/json/);
  });

  test('is let through by a name the operator has allowed', async () => {
    expect((await chat(user.client, { reasoning_effort: 'low' })).status).toBe(200);
    expect(sent()['reasoning_effort']).toBe('low');
  });
});

const wrongTypes = ['"1"', 'true', '[]', '{}'];
const refusals: [field: string, values: string[]][] = [
  ['temperature', ['-0.01', '2.01', '-1', '3', '1e999', ...wrongTypes]],
  ['top_p', ['-0.01', '1.01', '2', ...wrongTypes]],
  ['presence_penalty', ['-2.01', '2.01', ...wrongTypes]],
  ['frequency_penalty', ['-2.01', '2.01', ...wrongTypes]],
  ['max_tokens', ['0', '-1', '1.5', '1e999', ...wrongTypes]],
  ['max_completion_tokens', ['0', '-1', '1.5', ...wrongTypes]],
  ['n', ['0', '11', '-1', '1.5', ...wrongTypes]],
  ['seed', ['1.5', '1e999', ...wrongTypes]],
  ['stop', ['1', 'true', '{}', '[1]', '[null]', '[["a"]]']],
  ['stream', ['1', '"true"', '[]', '{}']],
  ['user', ['1', 'true', '[]', '{}']],
  ['model', ['1', 'true', 'null', '[]', '{}', '""']],
  ['messages', ['"hello"', '1', 'true', 'null', '{}', '[]']],
  ['tools', ['"x"', '1', '{}']],
  ['response_format', ['"json"', '1', '[]']],
  ['stream_options', ['true', '[]', '1']],
  ['parallel_tool_calls', ['1', '"true"']],
  ['tool_choice', ['1', 'true']],
];

/** Every optional field that the schema knows. */
const optionalFields = [
  ...['temperature', 'max_tokens', 'max_completion_tokens', 'top_p', 'presence_penalty', 'frequency_penalty'],
  ...['seed', 'stop', 'n', 'stream', 'user', 'stream_options', 'tools', 'tool_choice'],
  ...['parallel_tool_calls', 'response_format'],
];

describe('null', () => {
  test.each([...optionalFields.map((field) => [field]), optionalFields])(
    'for an optional field is as if it were left out: %s',
    async (...fields) => {
      const nulls = Object.fromEntries(fields.map((field) => [field, null]));
      await chatOk(user.client);
      await chatOk(user.client, nulls);
      const [plain, withNulls] = gateway.vendors.ledger();
      expect(withNulls?.body).toEqual(plain?.body);
    },
  );

  test('is the same question to the cache', async () => {
    const messages = [{ role: 'user', content: 'null and nothing' }];
    const cached = { 'x-gateway-cache': 'true' };
    await chatOk(user.client, { messages }, cached);
    const again = await chatOk(user.client, { messages, tools: null, stop: null, stream: null }, cached);
    expect(again.gateway.cache_hit).toBe(true);
  });

  test('of a field the operator lets through passes as it is', async () => {
    expect((await chat(user.client, { reasoning_effort: null })).status).toBe(200);
    expect(sent()).toHaveProperty('reasoning_effort', null);
  });
});

describe('a refused value', () => {
  test.each(refusals.flatMap(([field, values]) => values.map((value) => [field, value] as const)))(
    'is named in param, and nothing is sent: %s = %s',
    async (field, value) => {
      const { [field]: _replaced, ...others } = chatBody();
      const text = `{${JSON.stringify(others).slice(1, -1)}${Object.keys(others).length > 0 ? ',' : ''}"${field}":${value}}`;
      expectInvalid(await user.client.post(chatPath, text), new RegExp(`^${field}\\b`));
      expect(gateway.vendors.ledger()).toEqual([]);
    },
  );

  test.each(['model', 'messages'])('is also a missing %s', async (field) => {
    expectInvalid(await chat(user.client, { [field]: undefined }), field);
  });

  test('is giving both names of the token limit', async () => {
    expectInvalid(await chat(user.client, { max_tokens: 5, max_completion_tokens: 5 }), /^max_/);
  });

  test.each([
    'gw/fast',
    'balanced',
    'gw',
    'gw/',
    '/balanced',
    'gw/balanced ',
    'GW/balanced',
    'gpt-4o',
    'gw/toString',
  ])('is the unknown mode %j', async (model) => {
    expectInvalid(await chat(user.client, { model }), 'model');
  });

  test.each([
    'store',
    'metadata',
    'logprobs',
    'functions',
    'max_token',
    'Temperature',
    'gateway',
    '',
    'toString',
  ])('is the unknown top-level field %j', async (field) => {
    const error = expectInvalid(await chat(user.client, { [field]: 1 }));
    if (field !== '') expect(error.param).toBe(field);
    expect(gateway.vendors.ledger()).toEqual([]);
  });

  test.each([
    ['at the top', `{"__proto__":{"x":1},${JSON.stringify(chatBody()).slice(1)}`],
    [
      'in a message',
      '{"model":"gw/balanced","messages":[{"role":"user","content":"x","__proto__":{"y":1}}]}',
    ],
    [
      'deep in a tool',
      '{"model":"gw/balanced","messages":[{"role":"user","content":"x"}],"tools":[{"a":{"__proto__":{"z":1}}}]}',
    ],
    [
      'as constructor.prototype',
      `{"constructor":{"prototype":{"x":1}},${JSON.stringify(chatBody()).slice(1)}`,
    ],
  ])('is prototype pollution %s', async (_name, text) => {
    expectInvalid(await user.client.post(chatPath, text));
    expect(gateway.vendors.ledger()).toEqual([]);
  });
});

describe('messages', () => {
  test.each(['system', 'user', 'assistant', 'tool'])('may have the role %s', async (role) => {
    const messages = [
      { role: 'user', content: 'x' },
      { role, content: 'y', tool_call_id: 'c1' },
      { role: 'user', content: 'z' },
    ];
    const response = await chat(user.client, { messages });
    expect(response.status, response.text).toBe(200);
  });

  test.each(['developer', 'function', 'User', '', null, 1, undefined])(
    'may not have the role %j',
    async (role) => {
      const messages = [
        { role: 'user', content: 'x' },
        { role, content: 'y' },
      ];
      expectInvalid(await chat(user.client, { messages }), /^messages/);
    },
  );

  test.each([[[null]], [['hello']], [[1]], [[[]]]])('are objects, not %j', async (messages) => {
    expectInvalid(await chat(user.client, { messages }), /^messages/);
  });

  test('pass unknown fields through unchanged', async () => {
    const messages = [
      { role: 'system', content: 'Be brief.', name: 'setup' },
      {
        role: 'user',
        content: [{ type: 'text', text: 'hi' }],
        name: 'alice',
        'x-custom': { deep: [1, null, 'ü'] },
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city": "Pune"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: '31 degrees' },
    ];
    const response = await chat(user.client, { messages });
    expect(response.status, response.text).toBe(200);
    expect(sent()['messages']).toEqual(messages);
  });

  test('may replay an assistant message as clients were given it, without our block reaching a vendor', async () => {
    const replayed = {
      role: 'assistant',
      content: 'Hello.',
      refusal: null,
      annotations: [],
      audio: null,
      function_call: null,
      tool_calls: null,
      parsed: null,
      gateway: { provider: 'openai', cost_usd: '0.000001' },
    };
    const messages = [{ role: 'user', content: 'x' }, replayed, { role: 'user', content: 'y' }];
    const response = await chat(user.client, { messages });
    expect(response.status, response.text).toBe(200);
    const [, forwarded] = sent()['messages'] as Record<string, unknown>[];
    expect(forwarded).toMatchObject({ role: 'assistant', content: 'Hello.' });
    for (const field of ['gateway', 'parsed', 'refusal', 'audio', 'function_call', 'tool_calls'])
      expect(forwarded, field).not.toHaveProperty(field);
  });

  test.each<[count: number, param: RegExp | null, code: string | null]>([
    [100_000, /^messages/, null],
    [250_000, null, 'too_many_values'],
  ])('of %d bad ones are refused briefly and soon', async (count, param, code) => {
    const text = `{"model":"gw/balanced","messages":[${Array.from({ length: count }, () => '0').join(',')}]}`;
    const response = await user.client.post(chatPath, text);
    expect(expectInvalid(response, param ?? undefined)).toMatchObject(code === null ? {} : { code });
    expect(response.text.length).toBeLessThan(2048);
  });

  test('stand beside at most a bounded number of unknown fields in the error text', async () => {
    const extra = Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`f${index}`, 1]));
    const response = await chat(user.client, extra);
    expectInvalid(response);
    expect(response.text.length).toBeLessThan(2048);
  });
});

describe('a body', () => {
  test.each([
    ['"tools":[12345678901234567890]', 'tools[0]'],
    ['"reasoning_effort":1e400', 'reasoning_effort'],
    ['"temperature":0.12345678901234567890', 'temperature'],
  ])('with a number to be read that no double holds is refused, and names it: %s', async (field, param) => {
    const text = JSON.stringify(chatBody()).replace(/}$/, `,${field}}`);
    const error = expectInvalid(await user.client.post(chatPath, text));
    expect(error).toMatchObject({ param, code: 'inexact_number' });
    expect(gateway.vendors.openai.ledger).toEqual([]);
  });

  test.each([
    '"tools":[{"type":"function","function":{"name":"f","parameters":{"maximum":12345678901234567890}}}]',
    '"response_format":{"type":"x","depth":{"y":[1,0.12345678901234567890]}}',
  ])('with a number that is passed on reaches the vendor with all its digits: %s', async (field) => {
    const text = JSON.stringify(chatBody()).replace(/}$/, `,${field}}`);
    expect((await user.client.post(chatPath, text)).status).toBe(200);
    expect(gateway.vendors.openai.ledger.map(({ bodyText }) => bodyText)).toEqual([
      expect.stringContaining(field),
    ]);
  });

  test.each(['', '{', '{"model":', '{"a":1}x', 'nonsense', '\u0000', '{"model":"gw/balanced",}'])(
    'that is no JSON is refused with 422: %j',
    async (text) => {
      expectInvalid(await user.client.post(chatPath, text));
    },
  );

  test.each(['[]', '"x"', '1', 'null', 'true'])('that is no object is refused with 422: %s', async (text) => {
    expectInvalid(await user.client.post(chatPath, text));
  });

  test('with invalid UTF-8 is refused with 422', async () => {
    const text = JSON.stringify(chatBody());
    const bytes = Buffer.from(text.replace('hello', 'he\u0001lo'));
    bytes[bytes.indexOf(0x01)] = 0xff;
    expectInvalid(await user.client.post(chatPath, bytes));
  });

  test('with a key given twice is validated and forwarded as one and the same', async () => {
    const text =
      '{"model":"nonsense","model":"gw/balanced","messages":[{"role":"user","content":"a","content":"b"}]}';
    const response = await user.client.post(chatPath, text);
    if (response.status === 422) return;
    expect(response.status).toBe(200);
    expect(sent()['model']).toBe('gpt-test');
    expect(sent()['messages']).toEqual([{ role: 'user', content: 'b' }]);
  });

  test('nested beyond reason is refused, not a crash', async () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const text = `{"model":"gw/balanced","messages":[{"role":"user","content":"x","deep":${deep}}]}`;
    expectInvalid(await user.client.post(chatPath, text));
    expect((await chat(user.client)).status).toBe(200);
  });

  test('is looked at only after the service key', async () => {
    const response = await sendRaw(gateway.url, {
      parts: [
        `POST ${chatPath} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1\r\nconnection: close\r\n\r\n{`,
      ],
    });
    expect(response.statuses).toEqual([401]);
  });

  test('without a content type is refused with 415', async () => {
    const response = await user.client.post(chatPath, JSON.stringify(chatBody()), {
      'content-type': 'text/plain',
    });
    expectError(response, { status: 415, type: 'invalid_request_error' });
  });
});

describe('what a vendor lacks or names otherwise', () => {
  const via = async (model: string, additions: Record<string, unknown>) => {
    const response = await chat(user.client, additions, { 'x-gateway-override-model': model });
    expect(response.status, response.text).toBe(200);
    return gateway.vendors.ledger().at(-1)?.body ?? {};
  };

  test('is left out for anthropic, and the rest is translated', async () => {
    const body = await via('anthropic:claude-test', {
      messages: [
        { role: 'system', content: 'Be brief.', name: 'setup' },
        { role: 'user', content: 'hi', 'x-custom': 1 },
      ],
      temperature: 1.7,
      stop: 'END',
      seed: 1,
      presence_penalty: 1,
      frequency_penalty: 1,
    });
    expect(body).toEqual({
      model: 'claude-test',
      max_tokens: 4096,
      system: expect.anything(),
      messages: [{ role: 'user', content: expect.anything() }],
      temperature: 1,
      stop_sequences: ['END'],
    });
    expect(JSON.stringify(body['system'])).toContain('Be brief.');
    expect(JSON.stringify(body['messages'])).toContain('hi');
    expect(JSON.stringify(body['messages'])).not.toContain('x-custom');
  });

  test('is the limit’s newer name everywhere but at openai', async () => {
    expect(await via('sarvam:sarvam-test', { max_completion_tokens: 9 })).toMatchObject({ max_tokens: 9 });
    expect(await via('together:tog/test', { max_completion_tokens: 9 })).toMatchObject({ max_tokens: 9 });
    expect(await via('anthropic:claude-test', { max_completion_tokens: 9 })).toMatchObject({ max_tokens: 9 });
  });

  test('is the end-user label at sarvam', async () => {
    expect(await via('sarvam:sarvam-test', { user: 'customer-1' })).not.toHaveProperty('user');
  });

  test('never includes stream_options on a request that is no stream', async () => {
    expect(await via('openai:gpt-test', { stream_options: { include_usage: true } })).not.toHaveProperty(
      'stream_options',
    );
  });

  test('is n at anthropic: 422, since no candidate has it', async () => {
    const response = await chat(
      user.client,
      { n: 2 },
      { 'x-gateway-override-model': 'anthropic:claude-test' },
    );
    expectInvalid(response, 'n');
  });
});
