/** SPEC 7 and 4.5: what a tier request answers when every candidate failed. */
import { describe, expect, test } from 'vitest';
import { chat, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { expectInTime } from '../harness/measure/fault-bounds.ts';
import { metric } from '../harness/measure/fault-metrics.ts';
import {
  closeSilently,
  emptyOk,
  failure,
  hang,
  htmlOk,
  redirect,
  reset,
} from '../harness/vendors/vendor-plans.ts';
import type { Script } from '../harness/vendors/vendor-reply.ts';

const gateway = useGateway();
const user = useUser(gateway);
const pair = useUser(gateway, ['openai', 'sarvam']);

type Class = '429' | 'upstream' | 'refused' | 'rejected' | 'unexpected';

/** Every kind of failure and the class it counts as. */
const kinds: [name: string, script: Script, status: number | null, kind: Class][] = [
  ['429', failure(429), 429, '429'],
  ['500', failure(500), 500, 'upstream'],
  ['503', failure(503), 503, 'upstream'],
  ['529', failure(529), 529, 'upstream'],
  ['408', failure(408), 408, 'upstream'],
  ['307', redirect('http://127.0.0.1:9/'), 307, 'upstream'],
  ['reset', reset, null, 'upstream'],
  ['close', closeSilently, null, 'upstream'],
  ['empty 200', emptyOk, 200, 'upstream'],
  ['HTML 200', htmlOk, 200, 'upstream'],
  ['400', failure(400), 400, 'refused'],
  ['413', failure(413), 413, 'refused'],
  ['422', failure(422), 422, 'refused'],
  ['401', failure(401), 401, 'rejected'],
  ['402', failure(402), 402, 'rejected'],
  ['403', failure(403), 403, 'rejected'],
  ['404', failure(404), 404, 'rejected'],
  ['405', failure(405), 405, 'unexpected'],
  ['409', failure(409), 409, 'unexpected'],
  ['451', failure(451), 451, 'unexpected'],
];

const verdicts: Record<Class, { status: number; type: string; code?: string }> = {
  '429': { status: 429, type: 'rate_limit_error' },
  upstream: { status: 502, type: 'provider_error' },
  refused: { status: 422, type: 'invalid_request_error', code: 'upstream_rejected' },
  rejected: { status: 503, type: 'service_unavailable_error' },
  unexpected: { status: 503, type: 'service_unavailable_error', code: 'upstream_unexpected_status' },
};
/** Of `gw_upstream`: what the user's own keys do does not count as a failure of the service. */
const blamed = (status: number, fault: string) =>
  metric(gateway, 'http_server_request_duration_seconds_count', [`="${status}"`, `gw_upstream="${fault}"`]);
const mixed = { status: 503, type: 'service_unavailable_error' };

test.each([
  ['rejected keys', failure(401), 503, 'user_key'],
  ['unknown models', failure(404), 503, ''],
  ['a status that says nothing', failure(451), 503, ''],
  ['broken vendors', failure(500), 502, ''],
])('%s: whose doing it is', async (_name, script, status, fault) => {
  gateway.vendors.openai.always(script);
  gateway.vendors.sarvam.always(script);
  const before = await blamed(status, fault);
  expect((await chat(pair.client)).status).toBe(status);
  await eventually(async () => (await blamed(status, fault)) === before + 1 || undefined);
});

describe('the verdict', () => {
  const pairs = kinds.flatMap((first) =>
    kinds.map((second) => [first[0], second[0], first, second] as const),
  );

  test.each(pairs)('on %s and %s is the one of the truth table', async (_a, _b, first, second) => {
    gateway.vendors.openai.always(first[1]);
    gateway.vendors.sarvam.always(second[1]);
    const expected = first[3] === second[3] ? verdicts[first[3]] : mixed;
    const response = await chat(pair.client);
    const error = expectError(response, expected);
    expect(error.attempts?.map((attempt) => attempt.provider)).toEqual(['openai', 'sarvam']);
    const hint = first[3] === 'rejected' && second[3] === 'rejected' ? 'false' : undefined;
    if (hint !== undefined) expect(response.headers['x-should-retry']).toBe(hint);
    if (response.status === 429 || response.status === 502)
      expect(response.headers['x-should-retry']).not.toBe('false');
  });

  test('is the same for a stream, as an ordinary error answer', async () => {
    gateway.vendors.always(failure(500));
    const response = await chat(user.client, { stream: true });
    expectError(response, { status: 502, type: 'provider_error' });
  });

  test('on silence everywhere is 502 after one timeout for each candidate', async () => {
    gateway.vendors.always(hang);
    const started = performance.now();
    const response = await chat(user.client, {}, { 'x-gateway-timeout': '1' });
    const error = expectError(response, { status: 502, type: 'provider_error' });
    expectInTime(performance.now() - started - 3_000, 500);
    expect(error.attempts).toHaveLength(3);
    for (const attempt of error.attempts ?? []) {
      expect(attempt.status).toBeNull();
      expect(attempt.latency_ms).toBeGreaterThanOrEqual(900);
    }
  });

  test('on all three kinds mixed is 503', async () => {
    gateway.vendors.openai.always(failure(429, { 'retry-after': '5' }));
    gateway.vendors.sarvam.always(failure(500));
    gateway.vendors.anthropic.always(failure(401));
    expectError(await chat(user.client), mixed);
  });

  test('is never the vendor’s own 401 or 422', async () => {
    gateway.vendors.always(failure(401));
    const response = await chat(user.client);
    expect(response.status).toBe(503);
    gateway.vendors.always(failure(422));
    expectError(await chat(user.client), {
      status: 422,
      type: 'invalid_request_error',
      code: 'upstream_rejected',
    });
  });

  test('on one candidate alone follows the same table', async () => {
    const single = await registerWithKeys(gateway.url, ['openai']);
    for (const [, script, , kind] of kinds) {
      gateway.vendors.openai.always(script);
      expectError(await chat(single.client), verdicts[kind]);
    }
  });
});

describe('attempts[]', () => {
  test('tells what happened, candidate by candidate', async () => {
    gateway.vendors.openai.always(failure(500, {}, 'engine on fire'));
    gateway.vendors.sarvam.always(reset);
    gateway.vendors.anthropic.always(failure(529));
    const error = expectError(await chat(user.client), { status: 502, type: 'provider_error' });
    expect(error.attempts).toMatchObject([
      { provider: 'openai', model: 'gpt-test', status: 500 },
      { provider: 'sarvam', model: 'sarvam-test', status: null },
      { provider: 'anthropic', model: 'claude-test', status: 529 },
    ]);
    for (const attempt of error.attempts ?? []) {
      expect(Object.keys(attempt).sort()).toEqual(['latency_ms', 'model', 'provider', 'reason', 'status']);
      expect(attempt.reason).toBeTypeOf('string');
      expect(attempt.reason).not.toBe('');
      expect(Number.isInteger(attempt.latency_ms)).toBe(true);
      expect(attempt.latency_ms).toBeGreaterThanOrEqual(0);
    }
  });

  test('carries the vendor’s message when the request itself was refused', async () => {
    gateway.vendors.always(failure(400, {}, 'context length exceeded'));
    const error = expectError(await chat(user.client), {
      status: 422,
      type: 'invalid_request_error',
      code: 'upstream_rejected',
    });
    expect(error.attempts?.every((attempt) => attempt.reason.includes('context length exceeded'))).toBe(true);
    expect(error.message).not.toContain('context length exceeded');
  });

  test('never repeats a key that a vendor echoes', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai']);
    gateway.vendors.openai.always((request) => {
      const key = String(request.headers['authorization']).replace('Bearer ', '');
      return failure(401, {}, `Incorrect API key provided: ${key}`)(request);
    });
    const response = await chat(owner.client);
    expect(response.status).toBe(503);
    const secret = `sk-openai-${owner.id}`;
    expect(response.text).not.toContain(secret);
    expect(JSON.stringify(await logRowsOnceThere(owner.client, 1))).not.toContain(secret);
    expect(gateway.output()).not.toContain(secret);
  });
});

describe('Retry-After of a 429', () => {
  const date = (secondsAhead: number) => new Date(Date.now() + secondsAhead * 1000).toUTCString();
  type Given = Record<string, string> | (() => Record<string, string>);
  const rows: [name: string, given: Given[], atLeast: number | null, atMost: number | null][] = [
    [
      'the least of seconds',
      [{ 'retry-after': '30' }, { 'retry-after': '7' }, { 'retry-after': '12' }],
      7,
      7,
    ],
    ['the one that is given', [{}, { 'retry-after': '9' }, {}], 9, 9],
    ['absent when nobody gave one', [{}, {}, {}], null, null],
    [
      'the least when one is a date',
      [{ 'retry-after': '30' }, () => ({ 'retry-after': date(12) }), {}],
      10,
      12,
    ],
    ['seconds when a date is later', [{ 'retry-after': '7' }, () => ({ 'retry-after': date(40) }), {}], 7, 7],
    ['milliseconds rounded up', [{ 'retry-after-ms': '1500' }, { 'retry-after': '30' }, {}], 2, 2],
    ['a fraction rounded up', [{ 'retry-after': '1.5' }, { 'retry-after': '30' }, {}], 2, 2],
    ['0 where that is the least', [{ 'retry-after': '0' }, { 'retry-after': '30' }, {}], 0, 0],
    ['free of negative values', [{ 'retry-after': '-5' }, { 'retry-after': '30' }, {}], 30, 30],
    ['free of nonsense', [{ 'retry-after': 'soon' }, { 'retry-after': '30' }, {}], 30, 30],
    [
      'absent when all are nonsense',
      [{ 'retry-after': 'soon' }, { 'retry-after': '-1' }, { 'retry-after': '' }],
      null,
      null,
    ],
    [
      'free of the short milliseconds of a bad form',
      [{ 'retry-after-ms': 'x', 'retry-after': '4' }, {}, {}],
      4,
      4,
    ],
  ];

  test.each(rows)('is %s', async (_name, given, atLeast, atMost) => {
    const names = ['openai', 'sarvam', 'anthropic'] as const;
    names.forEach((name, index) => {
      const headers = given[index] ?? {};
      gateway.vendors[name].always(failure(429, typeof headers === 'function' ? headers() : headers));
    });
    const response = await chat(user.client);
    expectError(response, { status: 429, type: 'rate_limit_error' });
    const value = response.headers['retry-after'];
    if (atLeast === null || atMost === null) expect(value).toBeUndefined();
    else {
      expect(value).toMatch(/^\d+$/);
      expect(Number(value)).toBeGreaterThanOrEqual(atLeast);
      expect(Number(value)).toBeLessThanOrEqual(atMost);
    }
  });

  test('over 60 seconds comes with x-should-retry: false, up to 60 without', async () => {
    gateway.vendors.always(failure(429, { 'retry-after': '61' }));
    const long = await chat(user.client);
    expect(long.headers).toMatchObject({ 'retry-after': '61', 'x-should-retry': 'false' });
    gateway.vendors.always(failure(429, { 'retry-after': '60' }));
    const short = await chat(user.client);
    expect(short.headers['retry-after']).toBe('60');
    expect(short.headers['x-should-retry']).not.toBe('false');
  });

  test('does not put the candidate out of order for the next request', async () => {
    gateway.vendors.openai.script(failure(429, { 'retry-after': '30' }));
    expect((await chat(user.client)).status).toBe(200);
    gateway.vendors.clear();
    expect((await chat(user.client)).status).toBe(200);
    expect(gateway.vendors.calls()).toEqual(['openai']);
  });
});

describe('an exhausted request', () => {
  test('has one log row with status error', async () => {
    const owner = await registerWithKeys(gateway.url, ['openai', 'sarvam']);
    gateway.vendors.always(failure(500));
    const response = await chat(owner.client);
    expectError(response, { status: 502, type: 'provider_error' });
    const rows = await logRowsOnceThere(owner.client, 1);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({
      mode: 'gw/balanced',
      status: 'error',
      cost_usd: '0.000000',
      cache_hit: false,
      residency_requested: null,
      residency_actual: 'india',
    });
    expect(rows[0]?.error).toMatch(/^provider_error: /);
  });
});
