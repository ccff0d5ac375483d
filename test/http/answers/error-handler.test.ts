import { describe, expect, test } from 'vitest';
import { StoreAway } from '../../../src/core/store-away.ts';
import { toGatewayError } from '../../../src/http/answers/error-handler.ts';

describe('an error of the framework', () => {
  const error = (code: string, statusCode: number) => Object.assign(new Error('x'), { code, statusCode });

  test.each([
    [error('FST_ERR_CTP_INVALID_MEDIA_TYPE', 415), 415, 'unsupported_media_type'],
    [error('FST_ERR_ROUTE_MISSING_CONTENT_TYPE', 400), 400, 'refused'],
    [error('FST_ERR_OF_A_LATER_VERSION', 414), 414, 'refused'],
    [error('FST_ERR_OF_A_LATER_VERSION', 500), 500, 'internal_error'],
    [error('ERR_OF_A_VENDOR', 404), 500, 'internal_error'],
    [new Error('x'), 500, 'internal_error'],
  ])("is the client's fault only when the framework says so: %s", (thrownError, status, code) => {
    expect(toGatewayError(thrownError)).toMatchObject({ status, code });
  });
});

test.each([false, true])(
  'a store that is away is a 503 that says when to come back (crowded: %s)',
  (crowded) => {
    const cause = new Error('connect ECONNREFUSED 10.1.2.3:5432');
    const error = toGatewayError(new StoreAway(cause, crowded));
    expect(error).toMatchObject({
      status: 503,
      type: 'service_unavailable_error',
      code: 'database_unavailable',
      headers: { 'retry-after': '1' },
    });
    expect(error.message).toBe('The database is not available. Try again shortly.');
  },
);
