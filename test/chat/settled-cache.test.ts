import { expect, test } from 'vitest';
import type { CacheOrigin, CacheResult } from '../../src/core/settled-request.ts';
import { settledRequest } from '../../src/core/settled-request.ts';
import { callOf } from './story.ts';

const origin: CacheOrigin = { provider: 'openai', model: 'm', requestId: null, traceId: null };
const untried = { last: null, served: null, records: [], skipped: [], tries: 0 };

test.each<[name: string, found: CacheResult, cachedFrom: CacheOrigin | undefined, expected: CacheResult]>([
  ['is a hit where what was found was served', 'hit', origin, 'hit'],
  ['is none where what was found was not served', 'hit', undefined, 'bypass'],
  ['is a miss where nothing was found', 'miss', undefined, 'miss'],
])('what a row says of the cache %s', (_name, cache, cachedFrom, expected) => {
  const facts = { latencyMs: 1, ...(cachedFrom && { cachedFrom }) };
  const ended = { rowId: 'row', createdAtMicros: 1, end: { status: 'success' }, cache, facts } as const;
  expect(settledRequest(callOf(), untried, ended).cache).toBe(expected);
});
