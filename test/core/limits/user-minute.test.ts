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

test('news that could not be told are told in their window, and not in the next one', () => {
  const minute = new UserMinute('ada');
  minute.admitAlone(0, false);
  minute.spend(100, 0);
  const first = minute.tell(null, minuteMs - 2);
  expect(minute.hasNews).toBe(false);
  minute.untold(first, minuteMs - 1);
  const again = minute.tell(null, minuteMs - 1);
  expect(again).toEqual(first);
  expect(again).toMatchObject({ requests: 1, tokens: 100 });

  minute.admitAlone(minuteMs, false);
  minute.untold(again, minuteMs + 1);
  expect(minute.tell(null, minuteMs + 1)).toMatchObject({ requests: 1, tokens: 0 });
});
