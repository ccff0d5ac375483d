/** SPEC 4.5, streaming. */
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  chatBody,
  chatPath,
  gatewayFields,
  gatewayOf,
  logRows,
  logRowsOnceThere,
  streamed,
} from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { takeApart } from '../harness/gateway/sse-reader.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually, untilStill } from '../harness/measure/eventually.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import { openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import type { Break } from '../harness/vendors/vendor-plans.ts';
import {
  answer,
  errorEvent,
  failure,
  hang,
  longStream,
  streamEvents,
  streamOf,
  tokensThen,
} from '../harness/vendors/vendor-plans.ts';
import { gate, heldBy, splitAt } from '../harness/vendors/vendor-reply.ts';

const gateway = useGateway({ tables: tables({ timeouts: { stream_idle_seconds: 1 } }) });
const user = useUser(gateway);

const openStream = (headers: Record<string, string> = {}, additions: Record<string, unknown> = {}) =>
  user.client.stream(chatPath, chatBody({ stream: true, ...additions }), headers);
const viaAnthropic = { 'x-gateway-override-model': 'anthropic:claude-test' };

describe('a stream', () => {
  test('has the headers of an unbuffered event stream', async () => {
    const stream = await streamed(user.client);
    expect(stream.headers['content-type']).toMatch(/^text\/event-stream/);
    expect(stream.headers['cache-control']).toMatch(/no-cache|no-store/);
    expect(stream.headers['x-accel-buffering']).toBe('no');
    expect(stream.headers['x-request-id']).toBeTypeOf('string');
    expect(stream.headers).not.toHaveProperty('content-encoding');
    expect(stream.headers).not.toHaveProperty('content-length');
  });

  test('is not compressed for a client that would take it so', async () => {
    const stream = await streamed(user.client, {}, { 'accept-encoding': 'gzip, deflate, br, zstd' });
    expect(stream.headers).not.toHaveProperty('content-encoding');
    expect(stream.content).toBe('Namaste, world.');
  });

  test.each([
    ['openai', {}, 'gw/balanced'],
    ['anthropic', viaAnthropic, 'override'],
    ['sarvam', { 'x-gateway-residency': 'india' }, 'gw/balanced'],
  ])('from %s is OpenAI chunks, then the gateway chunk, then [DONE]', async (provider, headers, mode) => {
    const stream = await streamed(user.client, {}, headers);
    expect(stream.content).toBe('Namaste, world.');
    expect(stream.done).toBe(true);
    expect(stream.data.filter((text) => text === '[DONE]')).toHaveLength(1);
    const last = stream.chunks.at(-1);
    const block = gatewayOf(stream);
    expect(last?.choices).toEqual([{ index: 0, delta: { gateway: block }, finish_reason: null }]);
    expect(block).toMatchObject({
      provider,
      mode,
      cache_hit: false,
      request_id: stream.headers['x-request-id'],
    });
    expect(Object.keys(block).sort()).toEqual(gatewayFields);
    for (const chunk of stream.chunks) {
      expect(chunk.object).toBe('chat.completion.chunk');
      expect(chunk.id).toBe(last?.id);
      expect(chunk.model).toBe(last?.model);
      expect(chunk.created).toBe(last?.created);
    }
    const finishes = stream.chunks.map((chunk) => chunk.choices?.[0]?.finish_reason).filter(Boolean);
    expect(finishes).toEqual(['stop']);
    expect(stream.chunks[0]?.choices?.[0]?.delta['role']).toBe('assistant');
  });

  test.each([{}, viaAnthropic])(
    'carries usage only if the client asked for it, on the chunk of the block and nowhere else',
    async (headers) => {
      const without = await streamed(user.client, {}, headers);
      expect(without.chunks.filter((chunk) => chunk.choices?.length === 0 || chunk.usage != null)).toEqual(
        [],
      );
      const asked = await streamed(user.client, { stream_options: { include_usage: true } }, headers);
      expect(asked.chunks.filter((chunk) => chunk.choices?.length === 0)).toEqual([]);
      const usage = asked.chunks.filter((chunk) => chunk.usage != null);
      expect(usage).toHaveLength(1);
      expect(usage[0]?.usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 });
      expect(asked.chunks.at(-1)).toBe(usage[0]);
      expect(usage).toEqual(asked.gatewayChunks);
      gatewayOf(asked);
      expect(gatewayOf(without).cost_usd).toBe(gatewayOf(asked).cost_usd);
      expect(gatewayOf(without).cost_usd).not.toBe('0.000000');
    },
  );

  test('asks the vendor for usage whether or not the client did', async () => {
    await streamed(user.client);
    expect(gateway.vendors.openai.ledger[0]?.body).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  test('without upstream usage costs 0.000000', async () => {
    gateway.vendors.openai.script(answer({ usage: null }));
    expect(gatewayOf(await streamed(user.client)).cost_usd).toBe('0.000000');
  });

  test.each(['openai:gpt-test', 'anthropic:claude-test'])(
    'of tool calls from %s can be put together',
    async (model) => {
      const calls = [
        { id: 'call_a', name: 'weather', arguments: '{"city":"Pune","unit":"C"}' },
        { id: 'call_b', name: 'clock', arguments: '{"zone":"Asia/Kolkata"}' },
      ];
      const vendor = model.startsWith('openai') ? gateway.vendors.openai : gateway.vendors.anthropic;
      vendor.script(answer({ toolCalls: calls }));
      const tools = calls.map(({ name }) => ({
        type: 'function',
        function: { name, parameters: { type: 'object' } },
      }));
      const stream = await streamed(user.client, { tools }, { 'x-gateway-override-model': model });
      const built: { id?: string; name?: string; arguments: string }[] = [];
      for (const chunk of stream.chunks) {
        const parts = (chunk.choices?.[0]?.delta['tool_calls'] ?? []) as {
          index: number;
          id?: string;
          type?: string;
          function?: { name?: string; arguments?: string };
        }[];
        for (const part of parts) {
          built[part.index] ??= { arguments: '' };
          const call = built[part.index] as (typeof built)[number];
          if (part.id !== undefined) {
            expect(call.id, 'the id comes once').toBeUndefined();
            call.id = part.id;
          }
          if (part.function?.name !== undefined) {
            expect(call.name, 'the name comes once').toBeUndefined();
            call.name = part.function.name;
          }
          call.arguments += part.function?.arguments ?? '';
        }
      }
      expect(built).toEqual(calls);
      expect(stream.chunks.map((chunk) => chunk.choices?.[0]?.finish_reason).filter(Boolean)).toEqual([
        'tool_calls',
      ]);
    },
  );

  test('is the same however the vendor’s bytes are cut', async () => {
    const text = ['नमस्ते ', 'दुनिया ', '🌏', ' end'];
    gateway.vendors.openai.always(answer({ text }));
    const reference = await streamed(user.client);
    const size = gateway.vendors.openai.ledger[0]?.bytesSent ?? 0;
    for (let step = 1; step <= 31; step += 3) {
      // At most 400 cuts each, the first ones spread over the whole stream by the larger steps.
      const cuts = Array.from(
        { length: Math.min(400, Math.floor(size / step)) },
        (_, index) => (index + 1) * step,
      );
      gateway.vendors.openai.script(splitAt(answer({ text }), cuts));
      const stream = await streamed(user.client);
      expect(stream.content).toBe('नमस्ते दुनिया 🌏 end');
      expect(stream.chunks.length).toBe(reference.chunks.length);
      gatewayOf(stream);
    }
  });

  test('tolerates comments, CRLF, a BOM, unknown fields and what follows [DONE]', async () => {
    const chunk = (delta: Record<string, unknown>, finish: string | null = null) =>
      JSON.stringify(openAiChunk('gpt-test', delta, finish));
    gateway.vendors.openai.script(
      streamOf([
        '\ufeff: hello\r\n\r\n',
        `id: 1\r\nretry: 5\r\ndata: ${chunk({ role: 'assistant', content: '' })}\r\n\r\n`,
        `data:${chunk({ content: 'one ' })}\r\n\r\n: keep-alive\r\n\r\n`,
        `event: message\r\ndata: ${chunk({ content: 'two' })}\r\n\r\n`,
        `data: ${chunk({}, 'stop')}\r\n\r\n`,
        'data: [DONE]\r\n\r\ndata: [DONE]\r\n\r\n',
        `data: ${chunk({ content: 'never' })}\r\n\r\n`,
      ]),
    );
    const stream = await streamed(user.client);
    expect(stream.content).toBe('one two');
    expect(stream.data.filter((text) => text === '[DONE]')).toHaveLength(1);
    expect(stream.done).toBe(true);
    gatewayOf(stream);
  });

  test('never shows a gateway block that a vendor made up', async () => {
    gateway.vendors.openai.script((request) => {
      const events = streamEvents(request);
      const forged = sse(openAiChunk('gpt-test', { content: 'x', gateway: { provider: 'forged' } }));
      return streamOf([...events.slice(0, 2), forged, ...events.slice(2)])(request);
    });
    const stream = await streamed(user.client);
    expect(gatewayOf(stream).provider).toBe('openai');
  });
});

describe('before the first token', () => {
  test('nothing is sent, the headers included', async () => {
    const held = gate();
    gateway.vendors.openai.script((request) => {
      const [role = '', ...rest] = streamEvents(request);
      return streamOf([role, held, ...rest])(request);
    });
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    const body = JSON.stringify(chatBody({ stream: true }));
    let bytes = 0;
    const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()));
    socket.on('data', (chunk) => {
      bytes += chunk.length;
    });
    socket.write(
      `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    const call = await gateway.vendors.openai.received(0);
    await eventually(async () => (call.bytesSent > 0 ? true : undefined));
    // A whole other request passes through the gateway meanwhile: the role chunk has been read by then.
    await streamed(user.client);
    expect(bytes).toBe(0);
    held.open();
    await ended;
    expect(bytes).toBeGreaterThan(0);
  });

  test('a finish without content is a clean answer, not a failure', async () => {
    gateway.vendors.openai.script(answer({ text: [], finishReason: 'length' }));
    const stream = await streamed(user.client);
    expect(stream.content).toBe('');
    expect(stream.done).toBe(true);
    expect(gatewayOf(stream).provider).toBe('openai');
  });

  test('a client that leaves ends the upstream call, and no further candidate is tried', async () => {
    gateway.vendors.openai.script(hang);
    const controller = new AbortController();
    const leaving = user.client.request('POST', chatPath, {
      body: chatBody({ stream: true }),
      signal: controller.signal,
    });
    const call = await gateway.vendors.openai.received(0);
    const left = performance.now();
    controller.abort();
    await expect(leaving).rejects.toThrow();
    expect(await call.closedEarly).toBe(true);
    expectInTime((call.peerClosedAtMs ?? Number.POSITIVE_INFINITY) - left, 100);
    expect(gateway.vendors.calls()).toEqual(['openai']);
  });
});

describe('after the first token', () => {
  const breaks: Break[] = ['hang', 'reset', 'fin', 'clean-end', 'error-event'];

  test.each(breaks.flatMap((how) => [1, 10].map((count) => [how, count] as const)))(
    'a vendor that breaks off (%s) after %d tokens gives those tokens, one error event and no [DONE]',
    async (how, count) => {
      gateway.vendors.openai.script(tokensThen(count, how));
      const reader = await openStream();
      const stream = takeApart(await reader.rest());
      expect(stream.content).toBe(Array.from({ length: count }, (_, index) => `t${index} `).join(''));
      expect(stream.data).not.toContain('[DONE]');
      expect(stream.chunks.at(-1)?.error).toMatchObject({
        message: expect.any(String),
        type: 'provider_error',
      });
      for (const field of ['param', 'code']) expect(stream.error).toHaveProperty(field);
      expect(stream.error?.['request_id']).toBe(reader.headers['x-request-id']);
      expect(stream.gatewayChunks).toEqual([]);
      expect(gateway.vendors.calls()).toEqual(['openai']);
    },
  );

  test.each(breaks)('a broken anthropic stream (%s) ends in the same way', async (how) => {
    gateway.vendors.anthropic.script(tokensThen(2, how));
    const stream = takeApart(await (await openStream(viaAnthropic)).rest());
    expect(stream.content).toBe('t0 t1 ');
    expect(stream.data).not.toContain('[DONE]');
    expect(stream.error).not.toBeNull();
    expect(gateway.vendors.calls()).toEqual(['anthropic']);
  });

  test('an error event names no key that the vendor echoes', async () => {
    gateway.vendors.openai.script((request) => {
      const events = streamEvents(request).slice(0, 2);
      return streamOf([...events, errorEvent(request, `bad key ${request.headers['authorization']}`)])(
        request,
      );
    });
    const reader = await openStream();
    expect(await reader.text()).not.toContain(`sk-openai-${user.id}`);
  });

  test.each(breaks)('a broken stream (%s) has a row that is not success', async (how) => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    gateway.vendors.openai.script(tokensThen(3, how));
    const reader = await owner.client.stream(chatPath, chatBody({ stream: true }));
    await reader.rest();
    const rows = await logRowsOnceThere(owner.client, 1);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ status: 'incomplete', provider: 'openai', model: 'gpt-test' });
    expect(rows[0]?.error).toMatch(/^provider_error: /);
  });

  test.each([{}, viaAnthropic])(
    'a client that leaves ends the upstream call, with one row',
    async (headers) => {
      const owner = await registerWithKeys(gateway.url);
      const held = gate();
      gateway.vendors.always((request) => {
        const events = streamEvents(request);
        const first = request.dialect === 'anthropic' ? 4 : 2;
        return streamOf([...events.slice(0, first), held, ...events.slice(first)])(request);
      });
      const reader = await owner.client.stream(chatPath, chatBody({ stream: true }), headers);
      expect(await reader.nextContent()).toBe('Namaste');
      const [call] = gateway.vendors.ledger();
      const left = performance.now();
      reader.destroy();
      expect(await call?.closedEarly).toBe(true);
      expectInTime((call?.peerClosedAtMs ?? Number.POSITIVE_INFINITY) - left, 100);
      const rows = await logRowsOnceThere(owner.client, 1);
      expect(rows).toHaveLength(1);
      expect(rows[0]?.status).toBe('client_closed');
      held.open();
    },
  );

  test('each token leaves as it comes', async () => {
    const [first, second] = [gate(), gate()];
    gateway.vendors.openai.script((request) => {
      const events = streamEvents(request, { text: ['a', 'b', 'c'] });
      const steps = [...events.slice(0, 2), first, ...events.slice(2, 3), second, ...events.slice(3)];
      return streamOf(steps)(request);
    });
    const reader = await openStream();
    expect(await reader.nextContent()).toBe('a');
    first.open();
    expect(await reader.nextContent()).toBe('b');
    second.open();
    expect(await reader.nextContent()).toBe('c');
    expect((await reader.rest()).at(-1)).toBe('[DONE]');
  });

  test('the row is there as soon as the stream has ended', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    for (let index = 1; index <= 10; index += 1) {
      await streamed(owner.client);
      expect(await logRows(owner.client)).toHaveLength(index);
    }
  });

  test('a client that stops reading stops the vendor too', async () => {
    const total = 128 * 1024 * 1024;
    gateway.vendors.openai.script(longStream(total / 65_536, 65_536));
    const body = JSON.stringify(chatBody({ stream: true }));
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    socket.pause();
    socket.write(
      `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    const call = await gateway.vendors.openai.received(0);
    // Kernel buffers of two loopback sockets, plus 1 MiB in the process.
    expect(await untilStill(() => call.bytesSent)).toBeLessThan(24 * 1024 * 1024);
    socket.destroy();
    expect(await call.closedEarly).toBe(true);
  });
});

describe('fallback in front of a stream', () => {
  test('leaves no trace of the candidate that failed', async () => {
    gateway.vendors.openai.script(tokensThen(0, 'error-event'));
    const stream = await streamed(user.client);
    expect(stream.data.join('\n')).not.toContain('gpt-test');
    expect(gatewayOf(stream).provider).toBe('sarvam');
  });

  test('counts the time of all attempts in latency_ms', async () => {
    const held = gate();
    gateway.vendors.openai.script(heldBy(held, failure(500)));
    const reading = streamed(user.client);
    await gateway.vendors.openai.received(0);
    const started = performance.now();
    await eventually(async () => (performance.now() - started > 150 ? true : undefined));
    held.open();
    expect(gatewayOf(await reading).latency_ms).toBeGreaterThanOrEqual(140);
  });
});
