import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { endpointsOf } from '../../src/chat/endpoints.ts';
import { Settlement } from '../../src/chat/settlement.ts';
import type { StoredAnswer } from '../../src/chat/stored-answer.ts';
import { decodeStoredAnswer, encodeStoredAnswer, storedAnswer } from '../../src/chat/stored-answer.ts';
import { overrideError, VerbatimError } from '../../src/chat/verbatim-error.ts';
import type { ChatCompletion } from '../../src/core/answer/chat-completion.ts';
import { noUsage } from '../../src/core/answer/usage.ts';
import type { Candidate } from '../../src/core/candidate.ts';
import type { VendorCode } from '../../src/core/error-codes.ts';
import type { GatewayError } from '../../src/core/errors.ts';
import { ProviderError } from '../../src/core/errors.ts';
import type { AttemptFailure, UpstreamReply } from '../../src/core/outcome.ts';
import { DueTimer } from '../../src/due-timer.ts';
import { providers } from '../../src/providers/registry.ts';
import { callOf, candidateOf, heldKey, secretOf, testTables, World } from './story.ts';

describe('the due timer', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function timer() {
    const fired: number[] = [];
    const startMs = performance.now();
    const due = new DueTimer(
      () => performance.now(),
      () => fired.push(performance.now() - startMs),
    );
    return { due, fired, at: (ms: number) => due.setDue(startMs + ms) };
  }

  test('fires once, at its time', () => {
    const { fired, at } = timer();
    at(100);
    vi.advanceTimersByTime(99);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual([100]);
  });

  test('moved later, fires later', () => {
    const { fired, at } = timer();
    at(100);
    vi.advanceTimersByTime(50);
    at(200);
    at(300);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual([300]);
  });

  test('moved earlier, fires earlier', () => {
    const { fired, at } = timer();
    at(100);
    at(50);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual([50]);
  });

  test('moved later and earlier again, fires at the last time given', () => {
    const { fired, at } = timer();
    at(100);
    at(500);
    at(200);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual([200]);
  });

  test('set to a time that is past, fires at once', () => {
    const { fired, at } = timer();
    at(-5);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual([1]);
  });

  test('cleared, does not fire, and can be set again', () => {
    const { due, fired, at } = timer();
    at(100);
    due.clear();
    vi.advanceTimersByTime(150);
    at(200);
    vi.advanceTimersByTime(1000);
    expect(fired).toEqual([200]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('the address of a candidate', () => {
  const tables = testTables();
  const own = (baseUrl: string) => candidateOf('self_hosted', tables, heldKey('self_hosted', { baseUrl }));

  test('is the vendor’s own by default', () => {
    const endpointOf = endpointsOf(providers, {});
    const origins = (['openai', 'anthropic', 'together', 'sarvam'] as const).map(
      (name) => endpointOf(candidateOf(name, tables))?.origin,
    );
    expect(origins).toEqual([
      'https://api.openai.com',
      'https://api.anthropic.com',
      'https://api.together.ai',
      'https://api.sarvam.ai',
    ]);
  });

  test('is the operator’s when set, without a trailing /v1', () => {
    const endpointOf = endpointsOf(providers, { openai: 'http://proxy:8080/openai/v1/' });
    expect(endpointOf(candidateOf('openai', tables))).toEqual({
      origin: 'http://proxy:8080',
      prefix: '/openai',
    });
    expect(endpointOf(candidateOf('sarvam', tables))?.origin).toBe('https://api.sarvam.ai');
  });

  test.each([
    ['https://llm.example', '/v1'],
    ['https://llm.example/', '/v1'],
    ['https://llm.example/v1', '/v1'],
    ['https://llm.example/openai/v1/', '/openai/v1'],
    ['https://llm.example/api', '/api'],
  ])('of a user at %s has the prefix %s', (baseUrl, prefix) => {
    const endpointOf = endpointsOf(providers, { openai: 'http://proxy' });
    expect(endpointOf(own(baseUrl))).toEqual({ origin: 'https://llm.example', prefix });
  });
});

const stored: StoredAnswer = {
  completion: { json: '{"id":"x"}', bytes: 10 },
  provider: 'openai',
  model: 'm',
  usage: { ...noUsage },
  values: 2,
  costMicroUsd: 46,
  requestId: 'r',
  traceId: null,
  spanId: null,
};

describe('what may be stored', () => {
  const answered = (indexes: readonly number[]): ChatCompletion => ({
    id: 'a',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: indexes.map((index) => ({
      index,
      message: { role: 'assistant', content: 'x' },
      finish_reason: 'stop',
    })),
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  });

  test.each<[n: number | undefined, indexes: readonly number[], may: boolean]>([
    [undefined, [0], true],
    [1, [0], true],
    [2, [0, 1], true],
    [2, [1, 0], true],
    [undefined, [1], false],
    [undefined, [0, 1], false],
    [2, [0], false],
    [2, [0, 0], false],
    [2, [0, 2], false],
    [2, [0, 1, 2], false],
    [2, [0, 1, 1], false],
    [1, [-1], false],
  ])('of n %s: choices %j: %s', (n, indexes, may) => {
    const call = callOf({ request: n === undefined ? {} : { n } });
    const completion = answered(indexes);
    const candidate = { provider: 'openai', model: 'm' } as Candidate;
    const json = JSON.stringify(completion);
    const entry = storedAnswer(call, candidate, completion, { json, bytes: json.length }, noUsage, 0n);
    expect(entry !== null).toBe(may);
  });

  test.each<[cost: bigint, may: boolean]>([
    [0n, true],
    [BigInt(Number.MAX_SAFE_INTEGER), true],
    [BigInt(Number.MAX_SAFE_INTEGER) + 1n, false],
  ])('that cost %s micro-dollars: %s', (cost, may) => {
    const completion = answered([0]);
    const candidate = { provider: 'openai', model: 'm' } as Candidate;
    const json = JSON.stringify(completion);
    const entry = storedAnswer(callOf(), candidate, completion, { json, bytes: json.length }, noUsage, cost);
    expect(entry !== null).toBe(may);
  });
});

const written = (change: Readonly<Record<string, unknown>>): string =>
  encodeStoredAnswer({ ...stored, ...change } as StoredAnswer).toString();

describe('a stored answer', () => {
  test('is read as it was written', () => {
    expect(decodeStoredAnswer(encodeStoredAnswer(stored))).toEqual(stored);
  });

  test('keeps every character of its text', () => {
    const json = '{"id":"नमस्ते 🙂","text":"a\\nb"}\n';
    const answer = { ...stored, completion: { json, bytes: Buffer.byteLength(json) } };
    expect(decodeStoredAnswer(encodeStoredAnswer(answer))).toEqual(answer);
  });

  test.each<[name: string, bytes: string]>([
    ['no JSON', '{\n{}'],
    ['nothing', ''],
    ['null', 'null\n{}'],
    ['an answer without its facts', '{"id":"x"}'],
    ['facts without their values', written({ values: null })],
    ['facts without their cost', written({ costMicroUsd: undefined })],
    ['facts with a negative cost', written({ costMicroUsd: -1 })],
    ['facts with a cost of no sane size', written({ costMicroUsd: 2 ** 53 })],
    ['facts of a provider that is none', written({ provider: 'other' })],
    ['facts without their request', written({ requestId: null })],
    ['facts of another version', written({ usage: { input: 1 } })],
    ['facts with a count too many', written({}).replace(']', ',0]')],
    ['facts with a count that is none', written({ usage: { ...noUsage, outputTokens: -1 } })],
    ['one text, as earlier versions wrote it', JSON.stringify(stored)],
    ['an object of facts, as earlier versions wrote it', `${JSON.stringify(stored)}\n{}`],
  ])('that is %s is none', (_name, bytes) => {
    expect(decodeStoredAnswer(Buffer.from(bytes))).toBeNull();
  });
});

describe('the error of an override', () => {
  const failed = (reply: UpstreamReply | null, overrides: Partial<AttemptFailure> = {}): AttemptFailure => ({
    kind: 'upstream-failed',
    status: reply?.status ?? null,
    reason: 'why',
    vendorCode: null,
    retryAfterMs: null,
    reply,
    blamesCandidate: true,
    blamesProvider: false,
    ...overrides,
  });
  const reply = (
    status: number,
    headers: UpstreamReply['headers'],
    body = 'body',
    cut = false,
  ): UpstreamReply => ({ status, headers, body: Buffer.from(body), cut });

  test.each<[type: string | undefined, shown: string]>([
    ['application/json; charset=utf-8', 'application/json; charset=utf-8'],
    ['application/problem+json', 'application/problem+json'],
    ['text/plain', 'text/plain'],
    ['TEXT/HTML', 'TEXT/HTML'],
    [undefined, 'text/plain'],
  ])('of type %s is passed on byte by byte', (type, shown) => {
    const error = overrideError(failed(reply(403, { 'content-type': type }))) as VerbatimError;
    expect(error).toBeInstanceOf(VerbatimError);
    expect([error.status, error.headers, error.body.toString()]).toEqual([
      403,
      { 'content-type': shown },
      'body',
    ]);
  });

  test.each<[name: string, body: string, shown: string]>([
    ['JSON', ' {"error":{"message":"no"}}\n', 'application/json'],
    ['half of a JSON body', '{"error":', 'text/plain'],
    ['nothing', '', 'text/plain'],
  ])('without a type is what it is: %s', (_name, body, shown) => {
    const error = overrideError(failed(reply(500, {}, body))) as VerbatimError;
    expect([error.headers['content-type'], error.body.toString()]).toEqual([shown, body]);
  });

  test('that we have cut is no JSON any more', () => {
    const given = reply(500, { 'content-type': 'application/json' }, '{"error":"xxx', true);
    const error = overrideError(failed(given)) as VerbatimError;
    expect([error.headers['content-type'], error.body.toString()]).toEqual([
      'text/plain; charset=utf-8',
      '{"error":"xxx',
    ]);
  });

  test.each<[name: string, failure: Partial<AttemptFailure>, status: number, code: string]>([
    [
      'an error within a 200',
      { status: 200, vendorCode: 'overloaded_error' as VendorCode },
      502,
      'overloaded_error',
    ],
    ['an unreadable 200', { status: 200, kind: 'unreadable' }, 502, 'upstream_failed'],
    ['something that is not HTTP', { status: null, kind: 'unreadable' }, 502, 'upstream_failed'],
    ['a reset', { status: null, kind: 'unreachable' }, 502, 'no_upstream_answer'],
    ['a bug of ours', { status: null, kind: 'internal-error' }, 500, 'internal_error'],
  ])('that is %s is ours', (_name, failure, status, code) => {
    const error = overrideError(failed(null, failure)) as GatewayError;
    expect([error.status, error.code]).toEqual([status, code]);
  });

  test.each(['refused', 'unreadable'] as const)('of an address that is %s is not worth a repeat', (why) => {
    const failure = failed(null, { status: null, kind: 'unreachable', unusableAddress: why });
    const { status, code, headers } = overrideError(failure) as GatewayError;
    expect([status, code, headers]).toEqual([502, `address_${why}`, { 'x-should-retry': 'false' }]);
  });

  test('keeps the hints on retrying and nothing else', () => {
    const headers = {
      'content-type': 'text/plain',
      'retry-after': '3',
      'retry-after-ms': '3000',
      'x-should-retry': 'true',
      'set-cookie': ['a=b'],
      'openai-organization': 'org',
      server: 'x',
      'transfer-encoding': 'chunked',
    };
    expect((overrideError(failed(reply(429, headers))) as VerbatimError).headers).toEqual({
      'content-type': 'text/plain',
      'retry-after': '3',
      'retry-after-ms': '3000',
      'x-should-retry': 'true',
    });
  });

  test.each<[name: string, reply: UpstreamReply | null, code: string]>([
    ['a redirect', reply(302, { 'content-type': 'text/html', location: 'http://x' }), 'upstream_failed'],
    ['nothing at all', null, 'no_upstream_answer'],
  ])('that is %s is ours', (_name, given, code) => {
    const error = overrideError(failed(given)) as ProviderError;
    expect(error).toBeInstanceOf(ProviderError);
    expect([error.status, error.code, error.message]).toEqual([502, code, 'why']);
  });

  test.each<[status: number, type: string]>([
    [500, 'image/png'],
    [403, 'application/octet-stream'],
    [429, 'application/grpc; charset=utf-8'],
    [302, 'application/pdf'],
  ])('of status %i and type %s is ours, and quotes nothing of the body', (status, type) => {
    const failure = failed(reply(status, { 'content-type': type }, '\u0089PNG'), { reason: '\u0089PNG' });
    const error = overrideError(failure) as ProviderError;
    expect(error).toBeInstanceOf(ProviderError);
    expect([error.status, error.code, error.message]).toEqual([
      502,
      'upstream_failed',
      `The provider answered ${status} with a body that is neither JSON nor text.`,
    ]);
  });

  test.each<[name: string, failure: Partial<AttemptFailure>, hint: string | undefined]>([
    ['a cut connection', { kind: 'unreachable', connectionCut: true }, 'true'],
    ['a server that cannot be reached', { kind: 'unreachable' }, undefined],
    ['a timeout', { kind: 'timed-out' }, undefined],
  ])('after %s hints at whether to repeat it: %s', (_name, failure, hint) => {
    const error = overrideError(failed(null, failure)) as ProviderError;
    expect([error.status, error.code]).toEqual([502, 'no_upstream_answer']);
    expect(error.headers['x-should-retry']).toBe(hint);
    expect(error.message.includes('repeating the request is up to the client')).toBe(hint === 'true');
  });

  test.each<
    [status: number, retryAfterMs: number | null, said: string | undefined, shown: string | undefined]
  >([
    [409, null, undefined, 'false'],
    [409, null, 'true', 'true'],
    [429, 60_000, undefined, undefined],
    [429, 60_001, undefined, 'false'],
    [503, 61_000, undefined, 'false'],
    [429, 61_000, 'true', 'true'],
    [500, null, undefined, undefined],
    [500, null, 'false', 'false'],
  ])('%i with a wait of %s ms, of which the vendor said %s: %s', (status, retryAfterMs, said, shown) => {
    const headers = { 'content-type': 'text/plain', ...(said !== undefined && { 'x-should-retry': said }) };
    const error = overrideError(failed(reply(status, headers), { retryAfterMs })) as VerbatimError;
    expect(error.headers['x-should-retry']).toBe(shown);
  });
});

describe('a settlement', () => {
  test('is written once, however often it is asked for', async () => {
    const world = new World();
    const settlement = new Settlement(callOf(), world.deps);
    const late = { type: 'api_error', message: 'late' } as const;
    await settlement.settle({ status: 'success' }, { latencyMs: 1 });
    await settlement.settle({ status: 'error', error: late }, { latencyMs: 2 });
    expect(world.rows.map(({ end }) => end.status)).toEqual(['success']);
    expect(world.telemetry.rows).toHaveLength(1);
  });

  test('has an error text without credentials and of bounded length', async () => {
    const world = new World();
    const settlement = new Settlement(callOf(), world.deps);
    const message = `Bearer ${secretOf(heldKey('openai'))} ${'x'.repeat(1000)}`;
    await settlement.settle({ status: 'error', error: { type: 'provider_error', message } });
    const text = world.rows[0]?.error;
    expect(text).toMatch(/^provider_error: \[redacted\] x+…$/);
    expect(text).toHaveLength(500);
  });
});
