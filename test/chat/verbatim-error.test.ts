import { describe, expect, test } from 'vitest';
import { overrideError, VerbatimError } from '../../src/chat/verbatim-error.ts';
import type { VendorCode } from '../../src/core/error-codes.ts';
import { GatewayError, ProviderError } from '../../src/core/errors.ts';
import type { AttemptFailure, UpstreamReply } from '../../src/core/outcome.ts';

function failure(status: number, headers: Readonly<Record<string, string>> = {}): AttemptFailure {
  const reply = {
    status,
    headers: { 'content-type': 'text/plain', ...headers },
    body: Buffer.from('no'),
    cut: false,
  };
  return {
    kind: 'rate-limited',
    status,
    reason: 'no',
    vendorCode: null,
    retryAfterMs: null,
    reply,
    blamesCandidate: false,
    blamesProvider: false,
  };
}

test.each([400, 401, 429, 451, 500, 503, 599])('status %i is passed on', (status) => {
  expect(overrideError(failure(status))).toMatchObject({ status, constructor: VerbatimError });
});

test.each([100, 101, 204, 304, 399, 600, 601, 999, 1000])('status %i is our 502', (status) => {
  const error = overrideError(failure(status));
  expect(error).toBeInstanceOf(GatewayError);
  expect(error).toMatchObject({ status: 502 });
});

test.each(['retry-after', 'retry-after-ms', 'x-should-retry'])(
  '%s is passed on where it is short',
  (name) => {
    const headersFor = (value: string) =>
      (overrideError(failure(429, { [name]: value })) as VerbatimError).headers;
    expect(headersFor('1')[name]).toBe('1');
    expect(headersFor('1'.repeat(128))[name]).toBe('1'.repeat(128));
    for (const length of [129, 60_000]) expect(headersFor('1'.repeat(length))[name]).toBeUndefined();
  },
);

test('a content type longer than any is told by the body', () => {
  const error = overrideError(failure(400, { 'content-type': `text/plain; x=${'y'.repeat(60_000)}` }));
  expect(error).toMatchObject({ headers: { 'content-type': 'text/plain' } });
});

test('no room in the gateway is its own 503, which says when to come again', () => {
  const error = overrideError({ ...failure(0), kind: 'no-room', status: null, reply: null });
  expect(error).toMatchObject({ status: 503, code: 'no_room', headers: { 'retry-after': '1' } });
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
