import { expect } from 'vitest';
import type { ErrorBody } from '../vendors/wire-types.ts';
import { requestIdPattern } from '../vendors/wire-types.ts';
import type { HttpResponse } from './http-client.ts';

export interface ExpectedError {
  readonly status: number;
  readonly type: string;
  /** Exact value, or a pattern; not given: any string or null. */
  readonly param?: string | RegExp | null;
  readonly code?: string | null;
}

/** Checks an error answer against the envelope (status, type, param, code, ids, headers); its body. */
export function expectError(response: HttpResponse, expected: ExpectedError): ErrorBody['error'] {
  expect(response.status, response.text).toBe(expected.status);
  expect(response.headers['content-type']).toMatch(/^application\/json/);
  const body = response.json<ErrorBody & { request_id?: string }>();
  const { error } = body;
  expect(error, response.text).toBeTypeOf('object');
  expect(error.type, response.text).toBe(expected.type);
  expect(error.message).toBeTypeOf('string');
  expect(error.message).not.toBe('');
  for (const field of ['param', 'code'] as const) {
    expect(error, `${field} is always present`).toHaveProperty(field);
    expect(error[field] === null || typeof error[field] === 'string', `${field} is a string or null`).toBe(
      true,
    );
  }
  if (expected.param instanceof RegExp) expect(error.param ?? '').toMatch(expected.param);
  else if (expected.param !== undefined) expect(error.param, response.text).toBe(expected.param);
  if (expected.code !== undefined) expect(error.code, response.text).toBe(expected.code);
  const id = response.headers['x-request-id'];
  expect(id, 'X-Request-ID is on every response').toMatch(requestIdPattern);
  expect([error.request_id, body.request_id], 'the body names the request id').toContain(id);
  return error;
}

/** Shorthand for the commonest refusal. */
export function expectInvalid(response: HttpResponse, param?: string | RegExp | null): ErrorBody['error'] {
  return expectError(response, {
    status: 422,
    type: 'invalid_request_error',
    ...(param === undefined ? {} : { param }),
  });
}
