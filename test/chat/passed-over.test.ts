import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { HeldKey } from '../../src/core/candidate.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { openAiAnswer, openAiChunk, openAiError, sse } from '../harness/vendors/openai-wire.ts';
import type { CallParts } from './story.ts';
import { accountOf, balancedKeys, callOf, FakeClient, testTables, World } from './story.ts';

/** Candidates that cannot do what is asked are never tried, and `attempts[]` says so in their place. */

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
});

afterEach(() => {
  vi.useRealTimers();
});

function begin(parts: CallParts, keys: readonly HeldKey[] = balancedKeys, world = new World()) {
  const client = new FakeClient();
  const end = world.answerChat(callOf(parts), accountOf(keys), client, () => Promise.resolve(null));
  return { world, client, end: end.catch((error: unknown) => error) };
}

/** Of `gw/balanced` openai, sarvam, anthropic. */
const lacking = (provider: 'openai' | 'sarvam' | 'anthropic', fact: object) =>
  testTables({ models: [{ provider, match: '', ...fact }] });

const answer = openAiAnswer('m', { text: ['Hello'] });
const tools = [{ type: 'function', function: { name: 'f' } }];
const image = [{ type: 'image_url', image_url: { url: 'https://a.example/a.png' } }];

/** The feature, a request for it, the tables where anthropic cannot, and the words of the report. */
const features: readonly [name: string, request: object, fact: object, reason: string][] = [
  ['n', { n: 3 }, {}, 'n greater than 1'],
  ['n of a stream', { n: 2, stream: true }, {}, 'n greater than 1'],
  ['json_object', { response_format: { type: 'json_object' } }, {}, 'response_format json_object'],
  [
    'json_schema',
    { response_format: { type: 'json_schema', json_schema: { schema: {} } } },
    { json_schema: false },
    'response_format json_schema',
  ],
  ['other formats', { response_format: { type: 'regex' } }, {}, 'this type of response_format'],
  ['tools', { tools }, { tools: false }, 'tool calls'],
  ['a forced tool', { tools, tool_choice: 'required' }, { forced_tool: false }, 'a forced tool_choice'],
  ['images', { messages: [{ role: 'user', content: image }] }, { vision: false }, 'image inputs'],
  [
    'images by URL',
    { messages: [{ role: 'user', content: image }] },
    { image_urls: false },
    'images given by URL',
  ],
  ['stop', { stop: 'END' }, { stop: false }, 'stop sequences'],
  [
    'context',
    { messages: [{ role: 'user', content: 'x'.repeat(80) }] },
    { context_tokens: 9 },
    'a prompt of this length',
  ],
];

test('a plan that passes nobody over is told of as well: who watches the story learns that it has begun', async () => {
  const { world, end } = begin({});
  (await world.transport.call(0)).reply(200, answer);
  await end;
  expect([world.telemetry.plans, world.telemetry.skipped]).toEqual([1, []]);
});

describe.each(features)('%s', (_name, request, fact, reason) => {
  const tables = lacking('anthropic', fact);
  const skipped = {
    provider: 'anthropic',
    model: 'claude-test',
    status: null,
    reason: `skipped: does not support ${reason}`,
    latency_ms: 0,
  };

  test('is never asked of a vendor that cannot, whatever becomes of those that can', async () => {
    const { world, end } = begin({ request, tables });
    (await world.transport.call(0)).reply(500, openAiError(500));
    (await world.transport.call(1)).reply(503, openAiError(503));
    const error = await end;
    expect(world.transport.calls).toHaveLength(2);
    if (!(error instanceof GatewayError)) throw error;
    expect([error.status, error.code]).toEqual([502, 'upstream_failed']);
    expect(error.attempts?.map(({ provider, status }) => [provider, status])).toEqual([
      ['openai', 500],
      ['sarvam', 503],
      ['anthropic', null],
    ]);
    expect(error.attempts?.[2]).toEqual(skipped);
    expect(world.rows[0]).toMatchObject({ status: 'error', provider: 'sarvam', tries: 2 });
    expect(world.rows[0]?.attempts).toEqual(error.attempts);
  });

  test('is 422 before anything is sent where nobody can', async () => {
    const { world, end } = begin({ request, tables }, balancedKeys.slice(2));
    const error = await end;
    expect(error).toMatchObject({ status: 422, code: 'unsupported_feature' });
    expect(String(error)).toContain(reason);
    expect(world.transport.calls).toHaveLength(0);
    expect(world.rows).toMatchObject([{ status: 'error', attempts: [], tries: 0 }]);
  });
});

test.each([
  ['sound', { modalities: ['text', 'audio'] }],
  ['functions', { functions: [{ name: 'f' }] }],
  ['a search', { web_search_options: {} }],
])('%s is asked of the one vendor that has a word for it', async (_name, request) => {
  const { world, end } = begin({ request });
  (await world.transport.call(0)).reply(500, openAiError(500));
  expect(await end).toMatchObject({ status: 502 });
  expect(world.transport.calls).toHaveLength(1);
});

describe('the report of a candidate that was passed over', () => {
  const request = { tools };

  test('stands before the one that served', async () => {
    const { world, end } = begin({ request, tables: lacking('openai', { tools: false }) });
    (await world.transport.call(0)).reply(200, answer);
    await end;
    expect(world.rows[0]?.attempts.map(({ provider, reason }) => `${provider} ${reason}`)).toEqual([
      'openai skipped: does not support tool calls',
      'sarvam served',
    ]);
    expect(world.rows[0]?.tries).toBe(1);
  });

  test('stands between those that were tried', async () => {
    const { world, end } = begin({ request, tables: lacking('sarvam', { tools: false }) });
    (await world.transport.call(0)).reply(429, openAiError(429));
    (await world.transport.call(1)).reply(429, openAiError(429));
    expect(await end).toMatchObject({ status: 429 });
    expect(world.rows[0]?.attempts.map(({ provider, status }) => [provider, status])).toEqual([
      ['openai', 429],
      ['sarvam', null],
      ['anthropic', 429],
    ]);
  });

  test('is left out where the order ended before it', async () => {
    const { world, end } = begin({ request, tables: lacking('anthropic', { tools: false }) });
    (await world.transport.call(0)).reply(200, answer);
    await end;
    expect(world.rows[0]?.attempts.map(({ provider }) => provider)).toEqual(['openai']);
  });

  test('stands behind the last one tried where the time of the request was up', async () => {
    const tables = testTables({
      models: [{ provider: 'anthropic', match: '', tools: false }],
      timeouts: { request_seconds: 5 },
    });
    const { world, end } = begin({ request, tables });
    await world.transport.call(0);
    await vi.advanceTimersByTimeAsync(5_000);
    await end;
    expect(world.transport.calls).toHaveLength(1);
    expect(
      world.rows[0]?.attempts.map(({ provider, reason }) => `${provider} ${reason.split(':')[0]}`),
    ).toEqual(['openai timed-out', 'anthropic skipped']);
  });

  test('comes before a one held back, which is still tried, last', async () => {
    const world = new World();
    const tables = testTables({
      models: [{ provider: 'sarvam', match: '', tools: false }],
      cooldown: { failures: 1 },
    });
    const first = begin({ request, tables }, balancedKeys, world);
    (await world.transport.call(0)).reply(500, openAiError(500));
    (await world.transport.call(1)).reply(500, openAiError(500));
    await first.end;
    const again = begin({ request, tables }, balancedKeys, world);
    (await world.transport.call(2)).reply(500, openAiError(500));
    (await world.transport.call(3)).reply(500, openAiError(500));
    await again.end;
    expect(
      world.rows[1]?.attempts.map(({ provider, reason }) => `${provider} ${reason.split(':')[0]}`),
    ).toEqual(['sarvam skipped', 'openai upstream-failed', 'anthropic upstream-failed']);
    expect(world.rows[1]?.attempts[1]?.reason).toMatch(/ \(tried last: cooldown\)$/);
  });
});

describe('fields that were left out', () => {
  const fields = { seed: 7, presence_penalty: 1, user: 'u-1' };

  test('are named on the attempt that left them out, whether it served or failed', async () => {
    const { world, end } = begin({ request: fields });
    (await world.transport.call(0)).reply(500, openAiError(500));
    (await world.transport.call(1)).reply(500, openAiError(500));
    (await world.transport.call(2)).reply(500, openAiError(500));
    const error = await end;
    expect(error instanceof GatewayError && error.attempts).toMatchObject([
      { provider: 'openai' },
      { provider: 'sarvam', dropped: ['user'] },
      { provider: 'anthropic', dropped: ['seed', 'presence_penalty'] },
    ]);
    expect(world.rows[0]?.attempts[0]).not.toHaveProperty('dropped');
    const served = begin({ request: fields }, balancedKeys.slice(1, 2));
    (await served.world.transport.call(0)).reply(200, answer);
    await served.end;
    expect(served.world.rows[0]?.attempts).toMatchObject([{ reason: 'served', dropped: ['user'] }]);
  });

  test('are named on a stream that was cut', async () => {
    const { world, end } = begin({ request: { ...fields, stream: true } }, balancedKeys.slice(1, 2));
    (await world.transport.call(0)).stream(sse(openAiChunk('m', { content: 'Hel' }))).fail('reset');
    await end;
    expect(world.rows[0]).toMatchObject({ status: 'incomplete', attempts: [{ dropped: ['user'] }] });
  });
});
