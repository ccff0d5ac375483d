/** A model server that is not ours, used through the gateway as a self_hosted key. */
import OpenAI from 'openai';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  chat,
  chatBody,
  chatOk,
  chatPath,
  gatewayOf,
  logRowsOnceThere,
  streamed,
} from '../harness/gateway/chat.ts';
import type { HttpResponse } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { addKey, registerUser } from '../harness/gateway/register.ts';
import type { Chunk } from '../harness/gateway/sse-reader.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { useServer } from '../harness/servers/use-started.ts';
import type { Completion, ErrorBody } from '../harness/vendors/wire-types.ts';
import type { Work } from './model-server.ts';
import { modelName, modelServerKey, startModelServer } from './model-server.ts';
import { contextLength } from './tiny-model.ts';

const server = useServer(startModelServer);
const gateway = useGateway();
let user: User;

beforeEach(async () => {
  user = await registerUser(gateway.url);
  await addKey(user, selfHosted());
});

const selfHosted = (additions: Readonly<Record<string, unknown>> = {}) => ({
  provider: 'self_hosted',
  api_key: modelServerKey,
  base_url: server.url,
  declared_region: 'in',
  ...additions,
});
const override = { 'x-gateway-override-model': `self_hosted:${modelName}` };
/** Enough for a word in each script that the model knows, and the same answer every time. */
const sampling = { temperature: 1.5, seed: 7, max_tokens: 200 };
/** Many seconds of work, unless it is stopped. */
const endless = { max_tokens: contextLength - 1_000 };
/** llama.cpp looks once a second whether the client of a JSON answer is still there. */
const promptMs = 10_000;

/** The same question, without the gateway. */
function direct(additions: Readonly<Record<string, unknown>>): Promise<HttpResponse> {
  return server.client.post(chatPath, { ...chatBody(additions), model: modelName });
}

async function directOk(additions: Readonly<Record<string, unknown>>): Promise<Completion> {
  const response = await direct(additions);
  expect(response.status, response.text).toBe(200);
  return response.json<Completion>();
}

describe('an answer', () => {
  test('is the one that the model server gives, with our block beside it', async () => {
    const wanted = await directOk(sampling);
    const answer = await chatOk(user.client, sampling, override);
    expect(answer.choices[0]?.message['content']).toBe(wanted.choices[0]?.message['content']);
    expect(answer.choices[0]?.message['content']).toMatch(/\p{Script=Devanagari}/u);
    expect(answer.choices[0]?.finish_reason).toBe('length');
    expect(answer).toMatchObject({ object: 'chat.completion', model: modelName });
    expect(answer.usage).toMatchObject({
      prompt_tokens: wanted.usage.prompt_tokens,
      completion_tokens: sampling.max_tokens,
      total_tokens: wanted.usage.prompt_tokens + sampling.max_tokens,
    });
    expect(answer.gateway).toMatchObject({
      provider: 'self_hosted',
      model: modelName,
      mode: 'override',
      cache_hit: false,
      cost_usd: '0.000000',
      residency_actual: 'india',
    });
  });

  test('has its log row', async () => {
    const answer = await chatOk(user.client, sampling, override);
    const rows = await logRowsOnceThere(user.client, 1);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({
      mode: 'override',
      provider: 'self_hosted',
      model: modelName,
      input_tokens: answer.usage.prompt_tokens,
      output_tokens: answer.usage.completion_tokens,
      latency_ms: answer.gateway.latency_ms,
      cost_usd: '0.000000',
      status: 'success',
      error: null,
      residency_actual: 'india',
    });
  });

  test('ends at a stop sequence', async () => {
    const whole = (await chatOk(user.client, sampling, override)).choices[0]?.message['content'] as string;
    const stop = whole.trim().split(/\s+/)[30] as string;
    const cut = await chatOk(user.client, { ...sampling, stop }, override);
    expect(cut.choices[0]?.finish_reason).toBe('stop');
    expect(cut.choices[0]?.message['content']).toBe(whole.slice(0, whole.indexOf(stop)));
  });

  test('is served again from the cache', async () => {
    const caching = { ...override, 'x-gateway-cache': 'true' };
    const first = await chatOk(user.client, sampling, caching);
    const second = await chatOk(user.client, sampling, caching);
    expect(second.choices).toEqual(first.choices);
    expect(second.gateway).toMatchObject({ cache_hit: true, model: `self_hosted:${modelName}` });
  });
});

describe('a stream', () => {
  test('carries the answer token by token, then our block once, then [DONE]', async () => {
    const wanted = await directOk(sampling);
    const stream = await streamed(user.client, sampling, override);
    expect(stream.content).toBe(wanted.choices[0]?.message['content']);
    const pieces = stream.chunks.filter((chunk) => Boolean(chunk.choices?.[0]?.delta['content']));
    expect(pieces.length).toBeGreaterThan(sampling.max_tokens / 2);
    expect(stream.done).toBe(true);
    expect(stream.chunks.at(-1)).toBe(stream.gatewayChunks[0]);
    expect(gatewayOf(stream)).toMatchObject({ provider: 'self_hosted', model: modelName, mode: 'override' });
    expect(finishReasons(stream.chunks)).toEqual(['length']);
    expect(stream.chunks.filter((chunk) => chunk.usage != null)).toEqual([]);

    const [row] = await logRowsOnceThere(user.client, 1);
    expect(row).toMatchObject({
      status: 'success',
      input_tokens: wanted.usage.prompt_tokens,
      output_tokens: sampling.max_tokens,
      latency_ms: gatewayOf(stream).latency_ms,
    });
  });

  test('reports usage to those who ask for it', async () => {
    const usage = { stream: true, stream_options: { include_usage: true } };
    const stream = await streamed(user.client, { ...sampling, ...usage }, override);
    const reports = stream.chunks.filter((chunk) => chunk.usage != null);
    expect(reports).toHaveLength(1);
    // The last chunk carries both the usage and the gateway block.
    expect(reports[0]).toBe(stream.chunks.at(-1));
    expect(reports[0]?.choices).toMatchObject([{ delta: { gateway: { provider: 'self_hosted' } } }]);
    expect(reports[0]?.usage).toMatchObject({ completion_tokens: sampling.max_tokens });
  });

  test('is read by the OpenAI client', async () => {
    const openai = new OpenAI({ apiKey: user.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const wanted = await directOk(sampling);
    const runner = openai.chat.completions.stream(
      { model: 'gw/balanced', messages: [{ role: 'user', content: 'Say hello.' }], ...sampling },
      { headers: override },
    );
    let deltas = 0;
    runner.on('content', () => {
      deltas += 1;
    });
    const final = await runner.finalChatCompletion();
    expect(deltas).toBeGreaterThan(1);
    expect(final.choices[0]?.message.content).toBe(wanted.choices[0]?.message['content']);
    expect(final.choices[0]?.message).toMatchObject({ gateway: { provider: 'self_hosted' } });
  });
});

describe('what passes through unvalidated', () => {
  test('binds the model to a JSON schema', async () => {
    const schema = {
      type: 'object',
      properties: { colour: { enum: ['red', 'green', 'blue'] }, sure: { type: 'boolean' } },
      required: ['colour', 'sure'],
      additionalProperties: false,
    };
    const format = { type: 'json_schema', json_schema: { name: 'colour', strict: true, schema } };
    const stream = await streamed(user.client, { ...sampling, response_format: format }, override);
    expect(JSON.parse(stream.content)).toEqual({
      colour: expect.stringMatching(/^(red|green|blue)$/),
      sure: expect.any(Boolean),
    });
    expect(finishReasons(stream.chunks)).toEqual(['stop']);
  });

  test('makes it call tools, streamed or not', async () => {
    const parameters = {
      type: 'object',
      properties: { city: { enum: ['Pune', 'Kochi'] } },
      required: ['city'],
    };
    const tools = [{ type: 'function', function: { name: 'weather', parameters } }];
    const body = { ...sampling, max_tokens: 4_000, tools, tool_choice: 'required' };
    const [choice] = (await chatOk(user.client, body, override)).choices;
    const calls = choice?.message['tool_calls'] as readonly ToolCall[];
    expect(choice?.finish_reason).toBe('tool_calls');
    expect(calls.length).toBeGreaterThan(0);
    for (const { function: call } of calls) {
      expect(call.name).toBe('weather');
      expect(JSON.parse(call.arguments)).toEqual({ city: expect.stringMatching(/^(Pune|Kochi)$/) });
    }

    const stream = await streamed(user.client, body, override);
    expect(finishReasons(stream.chunks)).toEqual(['tool_calls']);
    expect(gatewayOf(stream)).toMatchObject({ provider: 'self_hosted' });
    expect(stream.content).toBe(choice?.message['content'] ?? '');
    expect(streamedCalls(stream.chunks)).toEqual(calls.map((call) => call.function));
  });
});

describe('a refusal of the model server is passed on word for word', () => {
  const tooLong = { messages: [{ role: 'user', content: '#'.repeat(contextLength + 1) }] };
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };

  test.each([
    ['a prompt beyond the context', tooLong],
    ['a prompt beyond the context, streamed', { ...tooLong, stream: true }],
    ['more choices than it can make', { n: 3 }],
    ['a picture', { messages: [{ role: 'user', content: [picture] }] }],
    ['a message without content', { messages: [{ role: 'tool' }] }],
  ])('%s', async (_name, additions) => {
    const wanted = await direct(additions);
    expect(wanted.status).toBeGreaterThanOrEqual(400);
    const got = await chat(user.client, additions, override);
    expect(got.status).toBe(wanted.status);
    expect(got.text).toBe(wanted.text);
    expect(got.headers['content-type']).toBe(wanted.headers['content-type']);
    const [row] = await logRowsOnceThere(user.client, 1);
    expect(row).toMatchObject({ status: 'error', provider: 'self_hosted', output_tokens: 0 });
  });

  test('a wrong key, which the label chooses', async () => {
    await addKey(user, selfHosted({ api_key: 'sk-wrong', label: 'wrong' }));
    await addKey(user, selfHosted({ label: 'right' }));
    const by = (label: string) => ({ 'x-gateway-override-model': `self_hosted/${label}:${modelName}` });
    const refused = await chat(user.client, sampling, by('wrong'));
    expect(refused.status).toBe(401);
    expect(refused.json<ErrorBody>().error).toEqual({
      message: 'Invalid API Key',
      type: 'authentication_error',
      code: 401,
    });
    await chatOk(user.client, sampling, by('right'));
  });
});

describe('the end of one side', () => {
  test('a client that leaves a stream ends the generation, and the next one is served', async () => {
    const before = await server.work();
    const reader = await user.client.stream(chatPath, chatBody({ stream: true, ...endless }), override);
    expect(await reader.nextContent()).not.toBeNull();
    reader.destroy();
    await expectPromptService(before);
  });

  test('a client that leaves before a JSON answer does so too', async () => {
    const before = await server.work();
    const leaving = new AbortController();
    const options = { headers: override, body: chatBody(endless), signal: leaving.signal };
    const rejected = expect(user.client.request('POST', chatPath, options)).rejects.toThrow();
    await eventually(async () => ((await server.work()).requests > 0 ? true : undefined));
    leaving.abort();
    await rejected;
    await expectPromptService(before);
  });

  /** The server has one slot: it answers the next request only once it has given up the one before. */
  async function expectPromptService(before: Work): Promise<void> {
    const leftAt = performance.now();
    await chatOk(user.client, { max_tokens: 1 }, override);
    expect(performance.now() - leftAt).toBeLessThan(promptMs);
    const after = await server.work();
    expect(after.requests).toBe(0);
    expect(after.decodes - before.decodes).toBeLessThan(endless.max_tokens / 2);
    const rows = await logRowsOnceThere(user.client, 2);
    expect(rows.map((row) => row.status).sort()).toEqual(['client_closed', 'success']);
  }

  test('a model server that dies leaves an error, never a clean end; afterwards it is a 502', async () => {
    const reader = await user.client.stream(chatPath, chatBody({ stream: true, ...endless }), override);
    expect(await reader.nextContent()).not.toBeNull();
    await server.kill();
    const rest = await reader.rest();
    expect(rest).not.toContain('[DONE]');
    expect((JSON.parse(rest.at(-1) ?? '{}') as Chunk).error).toMatchObject({ type: 'provider_error' });
    const refused = await chat(user.client, {}, override);
    expect(refused.status).toBe(502);
    expect(refused.json<ErrorBody>().error.type).toBe('provider_error');
    const rows = await logRowsOnceThere(user.client, 2);
    expect(rows.map((row) => row.status)).toEqual(['error', 'incomplete']);
  });
});

function finishReasons(chunks: readonly Chunk[]): (string | null | undefined)[] {
  return chunks.map((chunk) => chunk.choices?.[0]?.finish_reason).filter((reason) => reason != null);
}

interface ToolCall {
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Name and arguments of each call, put together from its fragments. */
function streamedCalls(chunks: readonly Chunk[]): ToolCall['function'][] {
  type Fragment = { readonly index: number; readonly function?: Partial<ToolCall['function']> };
  const calls: { name: string; arguments: string }[] = [];
  for (const chunk of chunks) {
    for (const fragment of (chunk.choices?.[0]?.delta['tool_calls'] ?? []) as readonly Fragment[]) {
      const call = calls[fragment.index] ?? { name: '', arguments: '' };
      call.name += fragment.function?.name ?? '';
      call.arguments += fragment.function?.arguments ?? '';
      calls[fragment.index] = call;
    }
  }
  return calls;
}
