/** The fake vendors do what their plans say: tests of failure are worth no more than this. */
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { httpClient } from '../gateway/http-client.ts';
import { takeApart } from '../gateway/sse-reader.ts';
import { untilStill } from '../measure/eventually.ts';
import { closedPort, resettingPort } from '../servers/dead-ports.ts';
import type { FakeVendor } from './fake-vendor.ts';
import { startFakeVendor } from './fake-vendor.ts';
import type { Break } from './vendor-plans.ts';
import {
  answer,
  failure,
  firstEventError,
  hang,
  headersThenSilence,
  longStream,
  reset,
  tokensThen,
} from './vendor-plans.ts';
import { gate, gzipped, heldBy, splitAt } from './vendor-reply.ts';

let vendor: FakeVendor;

beforeAll(async () => {
  vendor = await startFakeVendor();
});
afterAll(async () => {
  await vendor?.close();
});
beforeEach(() => vendor.clear());

const chat = '/v1/chat/completions';
const body = (additions: object = {}) => ({
  model: 'm',
  messages: [{ role: 'user', content: 'hi' }],
  ...additions,
});
const stream = async (path = chat, additions: object = {}) => {
  const reader = await httpClient(vendor.url).stream(path, body({ stream: true, ...additions }));
  const data = await reader.rest();
  return { reader, data, all: await reader.text() };
};

describe('a fake vendor', () => {
  test.each([chat, '/v2/chat/completions', '/chat/completions', '/prefix/v1/chat/completions'])(
    'speaks OpenAI at %s',
    async (path) => {
      const response = await httpClient(vendor.url).post(path, body());
      expect(response.json<object>()).toMatchObject({ object: 'chat.completion', model: 'm' });
    },
  );

  test('speaks Anthropic at /v1/messages', async () => {
    const response = await httpClient(vendor.url).post('/v1/messages', body());
    expect(response.json<object>()).toMatchObject({ type: 'message', stop_reason: 'end_turn' });
    const { data } = await stream('/v1/messages');
    expect(data.map((text) => (JSON.parse(text) as { type: string }).type)).toEqual([
      'message_start',
      'ping',
      'content_block_start',
      ...Array.from({ length: 4 }, () => 'content_block_delta'),
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
  });

  test('answers other paths with 404 and keeps them out of its ledger', async () => {
    expect((await httpClient(vendor.url).get('/v1/elsewhere')).status).toBe(404);
    expect(vendor.ledger).toEqual([]);
  });

  test('sends usage on a stream only when it was asked for', async () => {
    const without = takeApart((await stream()).data);
    expect(without.content).toBe('Namaste, world.');
    expect(without.chunks.some((chunk) => chunk.usage !== undefined)).toBe(false);
    const asked = takeApart((await stream(chat, { stream_options: { include_usage: true } })).data);
    expect(asked.chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 18 } });
  });

  test('prefers rules to the queue, and the queue to the standing script', async () => {
    vendor.always(failure(500));
    vendor.script(failure(429), failure(404));
    vendor.when('special', failure(401));
    const ask = async (content: string) =>
      (await httpClient(vendor.url).post(chat, body({ messages: [{ role: 'user', content }] }))).status;
    expect([await ask('a'), await ask('special'), await ask('b'), await ask('c')]).toEqual([
      429, 401, 404, 500,
    ]);
    expect(vendor.ledger).toHaveLength(4);
  });

  test.each<[Break, 'complete' | 'cut']>([
    ['clean-end', 'complete'],
    ['error-event', 'complete'],
    ['fin', 'cut'],
    ['reset', 'cut'],
  ])('breaks a stream off after three tokens by %s', async (how, end) => {
    vendor.script(tokensThen(3, how));
    const { reader, data } = await stream();
    const taken = takeApart(data);
    expect(taken.content).toBe('t0 t1 t2 ');
    expect(data).not.toContain('[DONE]');
    expect(reader.end).toBe(end);
    expect(taken.error !== null).toBe(how === 'error-event');
  });

  test('sends an error as the very first event', async () => {
    vendor.script(firstEventError);
    expect(takeApart((await stream()).data)).toMatchObject({
      content: '',
      done: false,
      error: { type: 'server_error' },
    });
  });

  test('gives equal bytes however it cuts them', async () => {
    const whole = await stream();
    vendor.script(splitAt(answer(), [1, 2, 3, 50, 51, 400]));
    expect((await stream()).all).toBe(whole.all);
  });

  test('compresses on demand', async () => {
    vendor.script(gzipped(answer()));
    const response = await httpClient(vendor.url).post(chat, body());
    expect(response.headers['content-encoding']).toBe('gzip');
  });

  test.each([
    ['says nothing', hang],
    ['says nothing after its headers', headersThenSilence],
  ])('%s, and notes when its peer leaves', async (_name, script) => {
    vendor.script(script);
    const controller = new AbortController();
    const waiting = httpClient(vendor.url).request('POST', chat, { body: body(), signal: controller.signal });
    const call = await vendor.received(0);
    controller.abort();
    await expect(waiting).rejects.toThrow();
    expect(await call.closedEarly).toBe(true);
    expect(call.peerClosedAtMs).not.toBeNull();
  });

  test('resets', async () => {
    vendor.script(reset);
    await expect(httpClient(vendor.url).post(chat, body())).rejects.toThrow();
  });

  test('waits at a gate', async () => {
    const held = gate();
    vendor.script(heldBy(held, answer()));
    const waiting = httpClient(vendor.url).post(chat, body());
    const call = await vendor.received(0);
    expect(call.finished).toBe(false);
    held.open();
    expect((await waiting).status).toBe(200);
    expect(await call.closedEarly).toBe(false);
  });

  test('waits for a reader that is slower than it', async () => {
    vendor.script(longStream(4096, 65_536));
    const socket = connect(Number(new URL(vendor.url).port), '127.0.0.1');
    socket.pause();
    const text = JSON.stringify(body({ stream: true }));
    socket.write(`POST ${chat} HTTP/1.1\r\nhost: x\r\ncontent-length: ${text.length}\r\n\r\n${text}`);
    const call = await vendor.received(0);
    expect(await untilStill(() => call.bytesSent)).toBeLessThan(32 * 1024 * 1024);
    socket.destroy();
    expect(await call.closedEarly).toBe(true);
  });
});

test('a closed port refuses and a resetting one resets', async () => {
  await expect(httpClient(await closedPort()).get('/')).rejects.toThrow(/ECONNREFUSED/);
  const resetting = await resettingPort();
  await expect(httpClient(resetting.url).get('/')).rejects.toThrow();
  await resetting.close();
});
