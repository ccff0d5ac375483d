/** The official OpenAI client for Node against the gateway: what its users rely on. */
import OpenAI from 'openai';
import { beforeAll, describe, expect, test } from 'vitest';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { answer, failure, tokensThen } from '../harness/vendors/vendor-plans.ts';
import { uuidPattern } from '../harness/vendors/wire-types.ts';

const gateway = useGateway();
const user = useUser(gateway);
let openai: OpenAI;

beforeAll(() => {
  openai = new OpenAI({ apiKey: user.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
});

const question = { model: 'gw/balanced', messages: [{ role: 'user' as const, content: 'Say hello.' }] };
const override = (model: string) => ({ headers: { 'X-Gateway-Override-Model': model } });
const weather = {
  type: 'function' as const,
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};
const calls = [
  { id: 'call_a', name: 'weather', arguments: '{"city":"Pune"}' },
  { id: 'call_b', name: 'weather', arguments: '{"city":"Kochi"}' },
  { id: 'call_c', name: 'weather', arguments: '{}' },
];

/** The error a promise rejects with. */
async function rejection(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('did not fail');
}

describe('chat.completions.create', () => {
  test('returns an answer with our block beside it', async () => {
    const completion = await openai.chat.completions.create(question);
    expect(completion.choices[0]?.message.content).toBe('Namaste, world.');
    expect(completion.usage?.total_tokens).toBe(18);
    expect(completion).toMatchObject({ gateway: { provider: 'openai', mode: 'gw/balanced' } });
  });

  test('has the request id where the client looks for it', async () => {
    const { data, response, request_id: id } = await openai.chat.completions.create(question).withResponse();
    expect(id).toMatch(uuidPattern);
    expect(response.headers.get('x-request-id')).toBe(id);
    expect(data).toMatchObject({ _request_id: id });
  });

  test.each(['openai:gpt-test', 'anthropic:claude-test'])('streams chunk by chunk from %s', async (model) => {
    const stream = await openai.chat.completions.create(
      { ...question, stream: true, stream_options: { include_usage: true } },
      override(model),
    );
    let text = '';
    let usage = 0;
    const blocks: unknown[] = [];
    for await (const chunk of stream) {
      const delta = chunk.choices[0]?.delta as { content?: string; gateway?: unknown } | undefined;
      text += delta?.content ?? '';
      if (delta?.gateway !== undefined) blocks.push(delta.gateway);
      if (chunk.usage) usage = chunk.usage.total_tokens;
    }
    expect(text).toBe('Namaste, world.');
    expect(usage).toBe(18);
    expect(blocks).toHaveLength(1);
  });
});

describe('chat.completions.stream', () => {
  test('puts the final completion together', async () => {
    const runner = openai.chat.completions.stream(question);
    const final = await runner.finalChatCompletion();
    expect(final.choices[0]?.message.content).toBe('Namaste, world.');
    expect(final.choices[0]?.finish_reason).toBe('stop');
  });

  test.each(['openai:gpt-test', 'anthropic:claude-test'])(
    'puts three streamed tool calls of %s together',
    async (model) => {
      gateway.vendors.openai.script(answer({ toolCalls: calls }));
      gateway.vendors.anthropic.script(answer({ toolCalls: calls }));
      const runner = openai.chat.completions.stream({ ...question, tools: [weather] }, override(model));
      const final = await runner.finalChatCompletion();
      expect(final.choices[0]?.finish_reason).toBe('tool_calls');
      const made = final.choices[0]?.message.tool_calls ?? [];
      expect(made.map((call) => [call.id, call.type === 'function' ? call.function.name : ''])).toEqual(
        calls.map((call) => [call.id, call.name]),
      );
      expect(
        made.map((call) =>
          call.type === 'function' ? (JSON.parse(call.function.arguments) as unknown) : null,
        ),
      ).toEqual(calls.map((call) => JSON.parse(call.arguments) as unknown));
    },
  );

  test('gives a message that can be sent back as it is', async () => {
    const runner = openai.chat.completions.stream(question);
    const final = await runner.finalChatCompletion();
    const message = final.choices[0]?.message;
    if (message === undefined) throw new Error('no message');
    const again = await openai.chat.completions.create({
      ...question,
      messages: [...question.messages, message, { role: 'user', content: 'And again.' }],
    });
    expect(again.choices[0]?.message.content).toBe('Namaste, world.');
    expect(JSON.stringify(gateway.vendors.openai.ledger.at(-1)?.body)).not.toContain('cost_usd');
  });

  test('fails on a stream that breaks off, and shows what came before', async () => {
    gateway.vendors.openai.script(tokensThen(3, 'reset'));
    let text = '';
    const error = await rejection(
      (async () => {
        const stream = await openai.chat.completions.create({ ...question, stream: true });
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
      })(),
    );
    expect(text).toBe('t0 t1 t2 ');
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ type: 'provider_error' });
  });

  test('ends the upstream call when the user aborts', async () => {
    gateway.vendors.openai.script(tokensThen(2, 'hang'));
    const stream = await openai.chat.completions.create({ ...question, stream: true });
    for await (const chunk of stream) if ((chunk.choices[0]?.delta.content ?? '') !== '') break;
    const [call] = gateway.vendors.openai.ledger;
    expect(await call?.closedEarly).toBe(true);
  });
});

describe('runTools', () => {
  test('calls the tool and finishes the conversation', async () => {
    gateway.vendors.openai.script(answer({ toolCalls: calls.slice(0, 1) }), answer({ text: ['31 degrees'] }));
    const runner = openai.chat.completions.runTools({
      ...question,
      tools: [
        {
          type: 'function',
          function: {
            name: 'weather',
            description: 'The weather of a city',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
            parse: JSON.parse,
            function: (input: { city: string }) => `${input.city}: 31`,
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe('31 degrees');
    const messages = gateway.vendors.openai.ledger[1]?.body['messages'] as Record<string, unknown>[];
    expect(messages.at(-1)).toMatchObject({ role: 'tool', tool_call_id: 'call_a', content: 'Pune: 31' });
  });
});

describe('errors are of the client’s own classes', () => {
  const failing: [
    name: string,
    type: new (...args: never[]) => Error,
    wanted: object,
    call: () => PromiseLike<unknown>,
  ][] = [
    [
      'AuthenticationError',
      OpenAI.AuthenticationError,
      { status: 401, type: 'authentication_error' },
      () => new OpenAI({ apiKey: 'gw_wrong', baseURL: `${gateway.url}/v1`, maxRetries: 0 }).models.list(),
    ],
    [
      'UnprocessableEntityError',
      OpenAI.UnprocessableEntityError,
      { status: 422, type: 'invalid_request_error', param: 'temperature' },
      () => openai.chat.completions.create({ ...question, temperature: 9 }),
    ],
    [
      'NotFoundError',
      OpenAI.NotFoundError,
      { status: 404, type: 'not_found_error' },
      () => openai.models.retrieve('gw/nothing'),
    ],
    [
      'RateLimitError',
      OpenAI.RateLimitError,
      { status: 429, type: 'rate_limit_error' },
      () => {
        gateway.vendors.always(failure(429, { 'retry-after': '1' }));
        return openai.chat.completions.create(question);
      },
    ],
    [
      'InternalServerError of 502',
      OpenAI.InternalServerError,
      { status: 502, type: 'provider_error' },
      () => {
        gateway.vendors.always(failure(500));
        return openai.chat.completions.create(question);
      },
    ],
  ];

  test.each(failing)('%s', async (_name, type, wanted, call) => {
    const error = await rejection(call());
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject(wanted);
    const { code, message, requestID } = error as { code: unknown; message: string; requestID: string };
    expect(code === null || typeof code === 'string').toBe(true);
    expect(message).not.toBe('');
    expect(requestID).toMatch(uuidPattern);
  });

  test('and a 409 or a hopeless 503 is not retried, whatever maxRetries says', async () => {
    const stubborn = new OpenAI({ apiKey: user.key, baseURL: `${gateway.url}/v1`, maxRetries: 2 });
    gateway.vendors.always(failure(401));
    expect(await rejection(stubborn.chat.completions.create(question))).toMatchObject({ status: 503 });
    expect(gateway.vendors.calls()).toEqual(['openai', 'sarvam', 'anthropic']);
  });
});

describe('models', () => {
  test('lists the three modes first', async () => {
    const { data } = await openai.models.list();
    expect(data.slice(0, 3).map((model) => model.id)).toEqual(['gw/cheap', 'gw/balanced', 'gw/premium']);
  });

  test('retrieves gw/balanced, slash and all', async () => {
    expect((await openai.models.retrieve('gw/balanced')).id).toBe('gw/balanced');
  });
});
