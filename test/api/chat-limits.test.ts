/** The limits of the tables: what is too long, too big or too slow is cut, whoever sends it. */
import { describe, expect, test } from 'vitest';
import {
  chat,
  chatBody,
  chatOk,
  chatPath,
  gatewayOf,
  logRowsOnceThere,
  streamed,
} from '../harness/gateway/chat.ts';
import { expectError, expectInvalid } from '../harness/gateway/expect-error.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { takeApart } from '../harness/gateway/sse-reader.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import { openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import {
  answer,
  hang,
  hugeAnswer,
  longStream,
  streamEvents,
  streamOf,
  tokensThen,
} from '../harness/vendors/vendor-plans.ts';
import type { Script, Step } from '../harness/vendors/vendor-reply.ts';
import { gzipped } from '../harness/vendors/vendor-reply.ts';

const gateway = useGateway({
  tables: tables({
    timeouts: { attempt_seconds: 1, stream_idle_seconds: 1, request_seconds: 2.5 },
    limits: {
      messages: 50,
      message_parts: 5,
      body_depth: 16,
      stop_sequences: 4,
      answer_bytes: 100_000,
      event_bytes: 10_000,
      stream_bytes: 200_000,
      cache_entry_bytes: 5_000,
    },
  }),
});
const user = useUser(gateway);

const rest = async () =>
  takeApart(await (await user.client.stream(chatPath, chatBody({ stream: true }))).rest());

describe('a request', () => {
  const messages = (count: number) => Array.from({ length: count }, () => ({ role: 'user', content: 'x' }));

  test('may hold as many messages as the tables allow, and no more', async () => {
    await chatOk(user.client, { messages: messages(50) });
    expectInvalid(await chat(user.client, { messages: messages(51) }), 'messages');
  });

  test('may hold as many content parts as the tables allow, and no more', async () => {
    const parts = (count: number) => ({
      messages: [
        { role: 'user', content: Array.from({ length: count }, () => ({ type: 'text', text: 'x' })) },
      ],
    });
    await chatOk(user.client, parts(5));
    expectInvalid(await chat(user.client, parts(6)), 'messages[0]');
  });

  test('may hold as many stop sequences as the tables allow, and no more', async () => {
    await chatOk(user.client, { stop: ['a', 'b', 'c', 'd'] });
    expectInvalid(await chat(user.client, { stop: ['a', 'b', 'c', 'd', 'e'] }), 'stop');
  });

  test('may not be nested deeper than the tables allow', async () => {
    const nest = (depth: number): unknown => (depth === 0 ? 1 : [nest(depth - 1)]);
    const deep = (depth: number) => ({ messages: [{ role: 'user', content: 'x', extra: nest(depth) }] });
    await chatOk(user.client, deep(8));
    expectInvalid(await chat(user.client, deep(20)));
  });
});

describe('an answer', () => {
  test('that is too large is a failure: the next candidate answers', async () => {
    gateway.vendors.openai.script(hugeAnswer(200_000));
    expect((await chatOk(user.client)).gateway.provider).toBe('sarvam');
  });

  test('that is too large everywhere is 502', async () => {
    gateway.vendors.always(hugeAnswer(200_000));
    expectError(await chat(user.client), { status: 502, type: 'provider_error' });
  });

  test('that is a compressed bomb is no way round the limit', async () => {
    gateway.vendors.openai.script(gzipped(hugeAnswer(20_000_000)));
    expect((await chatOk(user.client)).gateway.provider).toBe('sarvam');
  });

  test('under the limit passes whole', async () => {
    gateway.vendors.openai.script(hugeAnswer(90_000));
    const body = await chatOk(user.client);
    expect(body.gateway.provider).toBe('openai');
    expect(body.choices[0]?.message['content']).toBe('x'.repeat(90_000));
  });

  test('too large for the cache is served and not stored', async () => {
    const messages = [{ role: 'user', content: 'cache me if you can' }];
    for (let index = 0; index < 2; index += 1) {
      gateway.vendors.openai.script(hugeAnswer(20_000));
      const body = await chatOk(user.client, { messages }, { 'x-gateway-cache': 'true' });
      expect(body.gateway.cache_hit).toBe(false);
    }
  });
});

describe('a stream', () => {
  const endless = (first: readonly Step[]): Script =>
    streamOf([...first, `data: {"choices":[{"delta":{"content":"${'z'.repeat(30_000)}`], 'hang');

  test('with an event without end before the first token falls back', async () => {
    gateway.vendors.openai.script(endless([]));
    const stream = await streamed(user.client);
    expect(gatewayOf(stream).provider).toBe('sarvam');
  });

  test('with an event without end after the first token ends with an error event', async () => {
    gateway.vendors.openai.script((request) => endless(streamEvents(request).slice(0, 2))(request));
    const stream = await rest();
    expect(stream.content).toBe('Namaste');
    expect(stream.error).toMatchObject({ type: 'provider_error' });
    expect(stream.data).not.toContain('[DONE]');
  });

  test('with too many bytes ends with an error event', async () => {
    gateway.vendors.openai.script(longStream(1_000, 1_000));
    const stream = await rest();
    expect(stream.content.length).toBeGreaterThan(50_000);
    expect(stream.content.length).toBeLessThan(400_000);
    expect(stream.error).not.toBeNull();
    expect(stream.data).not.toContain('[DONE]');
    expect(await gateway.vendors.openai.ledger[0]?.closedEarly).toBeTypeOf('boolean');
  });

  test('that goes on for longer than a request may ends with an error event', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    gateway.vendors.openai.script((request) => {
      const steps: Step[] = streamEvents(request).slice(0, 1);
      for (let index = 0; index < 30; index += 1)
        steps.push(sse(openAiChunk('gpt-test', { content: `${index} ` })), { waitMs: 200 });
      return streamOf(steps)(request);
    });
    const started = performance.now();
    const reader = await owner.client.stream(chatPath, chatBody({ stream: true }));
    const stream = takeApart(await reader.rest());
    const elapsed = performance.now() - started;
    expect(elapsed).toBeGreaterThan(2_000);
    expectInTime(elapsed - 2_500, 700);
    expect(stream.error).not.toBeNull();
    expect(stream.data).not.toContain('[DONE]');
    expect((await logRowsOnceThere(owner.client, 1))[0]?.status).toBe('incomplete');
  });

  test('that falls silent after its first token ends at the idle limit', async () => {
    gateway.vendors.openai.script(tokensThen(2, 'hang'));
    const started = performance.now();
    const stream = await rest();
    expectInTime(performance.now() - started - 1_000, 500);
    expect(stream.content).toBe('t0 t1 ');
    expect(stream.error).toMatchObject({ type: 'provider_error' });
  });
});

describe('an attempt', () => {
  test('without a header is cut at the limit of the tables', async () => {
    gateway.vendors.openai.script(hang);
    const started = performance.now();
    expect((await chatOk(user.client)).gateway.provider).toBe('sarvam');
    const elapsed = performance.now() - started;
    expect(elapsed).toBeGreaterThan(900);
    expectInTime(elapsed - 1_000, 400);
  });

  test('is cut short by the limit of the whole request', async () => {
    gateway.vendors.always(hang);
    const started = performance.now();
    const response = await chat(user.client, {}, { 'x-gateway-timeout': '2' });
    expectInTime(performance.now() - started - 2_500, 500);
    expectError(response, { status: 502, type: 'provider_error' });
  });

  test('leaves the next request undisturbed', async () => {
    gateway.vendors.openai.script(hang, answer());
    await chatOk(user.client);
    expect((await chatOk(user.client)).gateway.provider).toBe('openai');
  });
});
