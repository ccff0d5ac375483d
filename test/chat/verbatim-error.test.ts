import { expect, test } from 'vitest';
import { overrideError, VerbatimError } from '../../src/chat/verbatim-error.ts';
import { GatewayError } from '../../src/core/errors.ts';
import type { AttemptFailure } from '../../src/core/outcome.ts';

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
