import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { GatewayMetadata } from '../../../src/core/answer/gateway-metadata.ts';
import { gatewayChunk, withGatewayBlock } from '../../../src/core/answer/gateway-metadata.ts';
import { frameEnd, frameStart } from '../../../src/core/answer/sse-frame.ts';
import { errorBody, errorEvent } from '../../../src/core/error-body.ts';
import {
  ApiError,
  AuthenticationError,
  ConflictError,
  GatewayError,
  HttpRequestError,
  InvalidRequestError,
  NotFoundError,
  ProviderError,
  RateLimitError,
  ResidencyError,
  ServiceUnavailableError,
} from '../../../src/core/errors.ts';

const metadata: GatewayMetadata = {
  provider: 'sarvam',
  model: 'sarvam-105b',
  mode: 'gw/balanced',
  cache_hit: false,
  latency_ms: 412,
  cost_usd: '0.001250',
  residency_actual: 'india',
  request_id: 'r-1',
};
const identity = { id: 'c-1', created: 1_790_000_000, model: 'sarvam-105b' };
const nothing = { usage: undefined, extras: {} };
const dataOf = (event: string): unknown => JSON.parse(event.slice(frameStart.length, -frameEnd.length));

describe('the gateway block', () => {
  const text = fc.string({ unit: 'binary' });

  test('joins any completion without changing a byte of it', () => {
    fc.assert(
      fc.property(fc.dictionary(text, fc.json(), { minKeys: 1 }), text, (completion, model) => {
        const block = { ...metadata, model };
        const json = JSON.stringify(completion);
        const joined = withGatewayBlock({ json, bytes: Buffer.byteLength(json) }, block);
        expect(joined.json.startsWith(json.slice(0, -1))).toBe(true);
        expect((JSON.parse(joined.json) as Record<string, unknown>)['gateway']).toEqual(block);
        expect(joined.bytes).toBe(Buffer.byteLength(joined.json));
      }),
    );
  });

  test('comes in a chunk of its own, with the identity of the others', () => {
    expect(dataOf(gatewayChunk(identity, metadata, nothing))).toEqual({
      ...identity,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { gateway: metadata }, finish_reason: null }],
    });
  });

  test('carries the usage and extras of the whole answer where there are any', () => {
    const totals = { usage: { prompt_tokens: 1 }, extras: { timings: { predicted_ms: 2 } } };
    expect(dataOf(gatewayChunk(identity, metadata, totals))).toEqual({
      ...(dataOf(gatewayChunk(identity, metadata, nothing)) as object),
      usage: { prompt_tokens: 1 },
      timings: { predicted_ms: 2 },
    });
  });
});

describe('an error', () => {
  test.each<[GatewayError, number, string, string | null]>([
    [new AuthenticationError(), 401, 'authentication_error', 'invalid_api_key'],
    [new NotFoundError('x'), 404, 'not_found_error', 'not_found'],
    [new ConflictError('x', 'email'), 409, 'conflict_error', 'already_exists'],
    [new InvalidRequestError('x', 'n'), 422, 'invalid_request_error', null],
    [new HttpRequestError(413, 'x', 'body_too_large'), 413, 'invalid_request_error', 'body_too_large'],
    [new ResidencyError('x'), 422, 'residency_error', 'residency_unavailable'],
    [new RateLimitError('x'), 429, 'rate_limit_error', 'rate_limited'],
    [new ApiError(new Error('cause')), 500, 'api_error', 'internal_error'],
    [new ProviderError('x'), 502, 'provider_error', 'upstream_failed'],
    [new ServiceUnavailableError('x'), 503, 'service_unavailable_error', 'unavailable'],
  ])('%s has its place in the table', (error, status, type, code) => {
    expect([error.status, error.type, error.code]).toEqual([status, type, code]);
    expect(error.name).toBe(error.constructor.name);
  });

  test('shows the four fields of OpenAI and the request id, always', () => {
    expect(errorBody(new GatewayError('invalid_request_error', 'text'), 'r-1')).toEqual({
      error: { message: 'text', type: 'invalid_request_error', param: null, code: null, request_id: 'r-1' },
    });
  });

  test('shows attempts where there are some', () => {
    const attempts = [{ provider: 'p', model: 'm', status: null, reason: 'r', latency_ms: 1 }];
    expect(errorBody(new ProviderError('x', { attempts }), 'r').error.attempts).toBe(attempts);
  });

  test('never shows its cause', () => {
    const text = JSON.stringify(errorBody(new ApiError(new Error('postgres://secret')), 'r'));
    expect(text).not.toContain('postgres');
  });

  test('tells the SDKs not to retry a conflict', () => {
    expect(new ConflictError('x', 'email').headers).toEqual({ 'x-should-retry': 'false' });
  });

  test('in a stream is one event with the same body', () => {
    const error = new ProviderError('broken\nline');
    expect(dataOf(errorEvent(error, 'r'))).toEqual(errorBody(error, 'r'));
  });
});
