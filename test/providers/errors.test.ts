import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../src/core/request/chat-request.ts';
import type { UpstreamErrorKind } from '../../src/providers/provider.ts';
import { providers } from '../../src/providers/registry.ts';
import { loadCases } from './fixtures.ts';

interface ErrorCase {
  readonly status: number;
  readonly headers?: Record<string, string>;
  /** An object, or the text as it comes. */
  readonly body?: unknown;
  readonly kind: UpstreamErrorKind;
  /** Words of the message. */
  readonly message?: string;
  readonly code?: string;
  readonly retry_after_ms?: number;
}

/** Sat, 21 Nov 2026 10:00:00 GMT */
const nowMs = 1_795_255_200_000;

describe('vendor errors', () => {
  test.each(loadCases<ErrorCase>('errors'))('$provider: $status $name', (given) => {
    const text = typeof given.body === 'string' ? given.body : JSON.stringify(given.body ?? '');
    const error = providers[given.provider].readError(
      given.status,
      given.headers ?? {},
      Buffer.from(text),
      nowMs,
    );

    expect(error.kind).toBe(given.kind);
    expect(error.message).toContain(given.message ?? '');
    expect(error.message).not.toBe('');
    expect(error.message.length).toBeLessThanOrEqual(500);
    expect(error.code).toBe(given.code ?? null);
    expect(error.retryAfterMs).toBe(given.retry_after_ms ?? null);
  });

  const mine = { stream_options: { include_usage: true } };
  const theirs = { stream_options: { include_usage: true, foo: 1 } };
  test.each<[status: number, body: string, request: object, again: boolean]>([
    [400, '{"error":{"message":"Unknown parameter: \'stream_options\'."}}', {}, true],
    [422, '{"detail":[{"loc":["body","stream_options","include_usage"]}]}', {}, true],
    [400, '{"error":{"message":"Unknown parameter: \'stream_options\'."}}', mine, true],
    [400, '{"error":{"message":"Unknown parameter: \'stream_options.foo\'."}}', theirs, false],
    [422, '{"detail":[{"loc":["body","stream_options","include_usage"]}]}', theirs, false],
    [400, '{"error":{"message":"bad temperature"}}', {}, false],
    [500, '{"error":{"message":"stream_options"}}', {}, false],
  ])('a self-hosted %i %s to %j is asked again without stream_options: %s', (status, body, fields, again) => {
    const request = { model: 'gw/cheap', messages: [], stream: true, ...fields } as unknown as ChatRequest;
    const form = providers.self_hosted.otherForm?.(status, Buffer.from(body), request);
    expect(form).toBe(again ? 'without-stream-options' : null);
  });

  test.each(['openai', 'anthropic', 'together', 'sarvam'] as const)('%s is never asked again', (name) => {
    expect(providers[name]).not.toHaveProperty('otherForm');
  });
});
