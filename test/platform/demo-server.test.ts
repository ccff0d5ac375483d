import OpenAI from 'openai';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { DemoServer } from '../../src/demo/demo-server.ts';
import { startDemoServer } from '../../src/demo/demo-server.ts';

const messages = [{ role: 'user' as const, content: 'Hello there' }];
let server: DemoServer;
let client: OpenAI;

beforeEach(async () => {
  server = await startDemoServer({ host: '127.0.0.1', port: 0, wordDelayMs: 1 });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 });
});

afterEach(async () => {
  await server.close();
});

test('answers as JSON with usage that adds up', async () => {
  const completion = await client.chat.completions.create({ model: 'demo', messages });
  expect(completion.choices[0]?.message.content).toContain('You said: "Hello there"');
  expect(completion.choices[0]?.finish_reason).toBe('stop');
  const { prompt_tokens = 0, completion_tokens = 0, total_tokens } = completion.usage ?? {};
  expect(prompt_tokens).toBe(2);
  expect(total_tokens).toBe(prompt_tokens + completion_tokens);
});

test('streams the same words one by one, with usage when asked', async () => {
  const whole = await client.chat.completions.create({ model: 'demo', messages });
  const stream = await client.chat.completions.create({
    ...{ model: 'demo', messages },
    stream: true,
    stream_options: { include_usage: true },
  });
  let text = '';
  let words = 0;
  let usage: OpenAI.CompletionUsage | null | undefined;
  for await (const chunk of stream) {
    const content = chunk.choices[0]?.delta.content ?? '';
    text += content;
    if (content !== '') words += 1;
    usage = chunk.usage ?? usage;
  }
  expect(text).toBe(whole.choices[0]?.message.content);
  expect(usage).toEqual(whole.usage);
  expect(words).toBe(whole.usage?.completion_tokens);
});

test('stops at max_tokens', async () => {
  const completion = await client.chat.completions.create({ model: 'demo', messages, max_tokens: 3 });
  expect(completion.choices[0]?.finish_reason).toBe('length');
  expect(completion.usage?.completion_tokens).toBe(3);
});

test('lists its model, and refuses what it does not know', async () => {
  const models = await client.models.list();
  expect(models.data.map((model) => model.id)).toEqual(['demo']);
  await expect(client.embeddings.create({ model: 'demo', input: 'x' })).rejects.toMatchObject({
    status: 404,
  });
  const bad = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: '{' });
  expect(bad.status).toBe(400);
});

test('closes with a stream open', async () => {
  const slow = await startDemoServer({ host: '127.0.0.1', port: 0, wordDelayMs: 60_000 });
  const response = await fetch(`${slow.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ messages, stream: true }),
  });
  await slow.close();
  await expect(response.text()).rejects.toThrow();
});
