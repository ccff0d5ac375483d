/** The log: one line per chat request, nothing that is nobody's business, nothing that makes a request wait. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { SettledRequest } from '../../src/core/settled-request.ts';
import { cutCauses } from '../../src/core/settled-request.ts';
import { AccessLines } from '../../src/telemetry/access-log.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { logRow } from '../adapters/postgres/log-rows.ts';
import { callOf } from '../chat/story.ts';
import { chat, chatBody, chatOk, chatPath, streamed } from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { startForTest, useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { failure, hang, tokensThen } from '../harness/vendors/vendor-plans.ts';

const gateway = useGateway();
const user = useUser(gateway);

const linesOf = (requestId: string) => gateway.logs().filter((line) => line['request_id'] === requestId);

/** The one line of a request; waits for it, and sees that no second one follows. */
async function lineOf(requestId: string): Promise<Record<string, unknown>> {
  await eventually(() => Promise.resolve(linesOf(requestId).length > 0 || undefined));
  await chatOk(user.client, {}, { 'x-request-id': `after-${requestId}` });
  await eventually(() => Promise.resolve(linesOf(`after-${requestId}`).length > 0 || undefined));
  const lines = linesOf(requestId);
  expect(lines).toHaveLength(1);
  return lines[0] ?? {};
}

describe('the access line', () => {
  test('of an answer says who served it, how fast, and what it cost', async () => {
    const id = randomUUID();
    await chatOk(user.client, {}, { 'x-request-id': id });
    const { time, latency_ms: latencyMs, ...line } = await lineOf(id);
    expect(line).toEqual({
      level: 'info',
      msg: 'chat',
      request_id: id,
      user_id: user.id,
      mode: 'gw/balanced',
      provider: 'openai',
      model: 'gpt-test',
      status: 'success',
      end: 'complete',
      stream: false,
      attempts: 1,
      ttft_ms: null,
      input_tokens: 11,
      output_tokens: 7,
      cost_usd: '0.000046',
    });
    expect(latencyMs).toBeTypeOf('number');
    expect(Date.parse(String(time))).not.toBeNaN();
  });

  test.each<[what: string, prepare: () => void, expected: Record<string, unknown>]>([
    ['a stream', () => undefined, { end: 'complete', stream: true, ttft_ms: expect.any(Number) }],
    [
      'a stream that its vendor cut',
      () => gateway.vendors.openai.script(tokensThen(2, 'reset')),
      { status: 'incomplete', end: 'upstream_error', attempts: 1 },
    ],
    [
      'an exhausted request',
      () => gateway.vendors.always(failure(500)),
      { status: 'error', end: 'refused', attempts: 3 },
    ],
  ])('of %s tells so', async (_what, prepare, expected) => {
    const id = randomUUID();
    prepare();
    const reader = await user.client.stream(chatPath, chatBody({ stream: true }), { 'x-request-id': id });
    await reader.text();
    gateway.vendors.clear();
    expect(await lineOf(id)).toMatchObject(expected);
  });

  test.each(cutCauses)('of an incomplete stream says %s, whatever the words of its error', (cut) => {
    const error = { type: 'provider_error', message: 'drain_cut: The upstream stalled.' } as const;
    const line = new AccessLines().of(callOf(), logRow({ end: { status: 'incomplete', cut, error } }), 0);
    expect(line).toContain(`"status":"incomplete","end":"${cut}"`);
  });

  test('says the same whatever the lines before said', () => {
    const lines = new AccessLines();
    const ends: readonly Partial<SettledRequest>[] = [
      {},
      { stream: true, ttftMs: 3 },
      { tries: 2 },
      { end: { status: 'client_closed' } },
      { target: { provider: 'sarvam', model: 'gpt-test' } },
      { target: { provider: 'openai', model: 'a "quoted" one' } },
      { mode: 'override', target: null },
      { cachedFrom: { provider: 'openai', model: 'gpt-test', requestId: null, traceId: null } },
    ];
    const settled = ends.flatMap((change) => ends.map((other) => logRow({ ...change, ...other })));
    for (const [index, row] of [...settled, ...settled].entries()) {
      const line = lines.of(callOf(), row, 1000 + Math.floor(index / 2));
      expect(line).toBe(new AccessLines().of(callOf(), row, 1000 + Math.floor(index / 2)));
      expect(JSON.parse(line)).toMatchObject({
        request_id: row.requestId,
        mode: row.mode,
        attempts: row.tries,
      });
    }
  });

  test('of a client that left tells so', async () => {
    const id = randomUUID();
    gateway.vendors.clear();
    gateway.vendors.always(hang);
    const leaving = new AbortController();
    const request = { body: chatBody(), headers: { 'x-request-id': id }, signal: leaving.signal };
    const asked = user.client.request('POST', chatPath, request).catch(() => null);
    await gateway.vendors.openai.received(0);
    leaving.abort();
    await asked;
    gateway.vendors.clear();
    expect(await lineOf(id)).toMatchObject({ status: 'client_closed', end: 'client_abort' });
  });

  test('of a cache hit names the cache', async () => {
    const id = randomUUID();
    const cached = { 'x-gateway-cache': 'true' };
    await chatOk(user.client, {}, cached);
    await chatOk(user.client, {}, { ...cached, 'x-request-id': id });
    expect(await lineOf(id)).toMatchObject({
      provider: 'cache',
      model: 'openai:gpt-test',
      cost_usd: '0.000000',
    });
  });
});

test('nothing that a client names is obeyed by a terminal that shows the log', async () => {
  const id = randomUUID();
  const model = 'x\u0085{"audit":"forged"}\u009b31m\u202e\u2028y';
  const override = Buffer.from(`openai:${model}`).toString('latin1');
  await chat(user.client, {}, { 'x-request-id': id, 'x-gateway-override-model': override });
  expect(await lineOf(id)).toMatchObject({ model });
  expect(gateway.output()).not.toMatch(/[\u007f-\u009f\u202e\u2028]/);
});

test('no prompt, answer, secret or vendor’s message is in the log, whatever goes wrong', async () => {
  gateway.vendors.openai.script(failure(500, {}, 'CANARY-VENDOR'));
  const headers = { 'x-forwarded-for': 'CANARY-HEADER', cookie: 'CANARY-COOKIE' };
  await chatOk(user.client, { messages: [{ role: 'user', content: 'CANARY-PROMPT' }] }, headers);
  await chat(user.client, { messages: 'CANARY-INVALID' });
  await user.client.request('POST', chatPath, { body: '{"CANARY-JSON' });
  await user.client.post('/v1/keys', { provider: 'CANARY', api_key: 'CANARY-KEY' });
  await streamed(user.client, { messages: [{ role: 'user', content: 'CANARY-STREAM' }] });
  await lineOf(await chatOk(user.client).then((answer) => answer.gateway.request_id));
  const output = gateway.output();
  for (const secret of ['CANARY', user.key, user.email, 'sk-openai', 'Namaste'])
    expect(output).not.toContain(secret);
});

test('what waits is written when the process ends, the last word last', async () => {
  const other = await startForTest();
  const owner = await registerWithKeys(other.url, ['openai']);
  const id = randomUUID();
  await chatOk(owner.client, {}, { 'x-request-id': id });
  expect(await other.stop()).toBe(0);
  const lines = other.logs();
  expect(lines.filter((line) => line['request_id'] === id)).toHaveLength(1);
  expect(lines.at(-1)).toMatchObject({ level: 'info', msg: 'stopped' });
});

describe('a logger', () => {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) });

  test('leaves out every field that is not on its list', () => {
    log.info({ body: 'CANARY', headers: { authorization: 'CANARY' }, key: 'CANARY', url: 'http://x' }, 'x');
    expect(lines.pop()).toEqual({ level: 'info', time: expect.any(String), url: 'http://x', msg: 'x' });
  });

  test('keeps of an error its type, redacted message, code and stack, and nothing a library hung on it', () => {
    const error = Object.assign(new TypeError('refused sk-abcdefghijkl'), {
      code: 'E1',
      detail: 'CANARY',
      parameters: ['CANARY'],
      cause: new Error('CANARY'),
    });
    log.error({ err: error }, 'x');
    const line = lines.pop();
    expect(line?.['err']).toEqual({
      type: 'TypeError',
      message: 'refused [redacted]',
      code: 'E1',
      stack: expect.stringContaining('    at '),
    });
    expect(JSON.stringify(line)).not.toContain('CANARY');
    expect(JSON.stringify(line)).not.toContain('abcdefghijkl');
  });

  test('spells out what a terminal would obey', () => {
    const written: string[] = [];
    createLogger('info', { write: (line) => void written.push(line) }).info(
      { url: 'x\u0085\u202ey' },
      '\u009b31m',
    );
    expect(written.join('')).toMatch(/^[\x20-\x7e]+\n$/);
    expect(JSON.parse(written.join(''))).toMatchObject({ url: 'x\u0085\u202ey', msg: '\u009b31m' });
  });
});
