/** What a replica knows of one user's minute. */
import { expect, test } from 'vitest';
import { minuteMs, rateLimitHeaders } from '../../../src/core/limits/minute.ts';
import type { Limits } from '../../../src/core/limits/user-limits.ts';
import { compileDefaults } from '../../../src/core/limits/user-limits.ts';
import { UserMinute } from '../../../src/core/limits/user-minute.ts';

test('a window that begins has a minute left, not more, whatever fraction of a millisecond it is', () => {
  const limits = compileDefaults({ requests_per_minute: 1 }) as Limits;
  for (let count = 0; count < 2_000; count += 1) {
    const counts = new UserMinute('ada').counts(count * 1234.567, false);
    expect(counts.leftMs).toBe(minuteMs);
    expect(rateLimitHeaders(limits, counts)['x-ratelimit-reset-requests']).toBe('1m0s');
  }
});
