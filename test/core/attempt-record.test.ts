import { describe, expect, test } from 'vitest';
import type { AttemptRecord, CandidateRecord } from '../../src/core/attempt-record.ts';
import {
  attemptReport,
  attemptRow,
  isSameServed,
  readAttempts,
  servedFacts,
} from '../../src/core/attempt-record.ts';
import type { Candidate } from '../../src/core/candidate.ts';
import type { AttemptFailure } from '../../src/core/outcome.ts';

const key = { id: 'k1', userId: 'u1', provider: 'self_hosted', declaredRegion: 'mumbai' };
const candidate = { provider: 'self_hosted', model: 'm', residency: 'india', heldBack: false, key };
const usage = { basis: 'complete', inputTokens: 3, outputTokens: 4 };
const record: AttemptRecord = {
  kind: 'tried',
  candidate: candidate as unknown as Candidate,
  number: 1,
  isSent: true,
  addressClass: 'private',
  end: { kind: 'served' },
  startedAtMs: 0,
  durationMs: 5.4,
  firstTokenMs: null,
  usage: usage as AttemptRecord['usage'],
  answer: null,
  dropped: [],
};
const failure: AttemptFailure = {
  kind: 'timed-out',
  status: null,
  reason: 'late',
  vendorCode: null,
  retryAfterMs: null,
  reply: null,
  blamesCandidate: true,
  blamesProvider: false,
};
/** What the row has of the attempt that served. */
const served = { key_id: 'k9', usage: { basis: 'complete', input_tokens: 30, output_tokens: 40 } } as const;

/** As a column of JSON gives it back. */
const stored = (one: CandidateRecord) => JSON.parse(JSON.stringify(attemptRow(one)));
const place = { residency: 'india', declared_region: 'mumbai', address_class: 'private' };
const own = { key_id: 'k1', usage: { basis: 'complete', input_tokens: 3, output_tokens: 4 } };

describe('what is written of an attempt is read again', () => {
  test.each<[string, CandidateRecord, object]>([
    [
      'that served: the row has its key and usage',
      record,
      { place, ...served, end: 'served', failure: null },
    ],
    [
      'that failed',
      { ...record, end: { kind: 'failed', failure } },
      { place, ...own, end: 'failed', failure: 'timed-out' },
    ],
    [
      'that was cut',
      { ...record, end: { kind: 'cut', reason: 'reset' } },
      { place, ...own, end: 'cut', failure: null },
    ],
    [
      'that was cancelled before its first token',
      { ...record, end: { kind: 'cancelled', reason: 'client-gone' } },
      { place, ...own, end: 'cancelled', failure: null },
    ],
    [
      'that was cancelled after it',
      { ...record, firstTokenMs: 3, end: { kind: 'cancelled', reason: 'client-gone' } },
      { place, ...own, end: 'cut', failure: null },
    ],
    [
      'of which nothing is known',
      { ...record, addressClass: null, usage: null, end: { kind: 'failed', failure } },
      {
        place: { ...place, address_class: null },
        key_id: 'k1',
        usage: null,
        end: 'failed',
        failure: 'timed-out',
      },
    ],
    [
      'whose fields were left out',
      { ...record, dropped: ['user'] },
      { place, ...served, end: 'served', failure: null },
    ],
    [
      'that never was',
      {
        kind: 'passed-over',
        provider: 'openai',
        model: 'm',
        reason: 'unsupported',
        detail: 'tools',
      } as unknown as CandidateRecord,
      {
        place: { residency: null, declared_region: null, address_class: null },
        ...{ key_id: null, usage: null, end: null, failure: null },
      },
    ],
  ])('%s', (_name, one, expected) => {
    const [read] = readAttempts([stored(one)], served);
    expect(read).toEqual({ report: attemptReport(one), ...expected });
  });
});

test('attempts that served are the same only where each fact that is written of them is', () => {
  const facts = servedFacts(record);
  expect(isSameServed(facts, servedFacts({ ...record }))).toBe(true);
  for (const name of Object.keys(facts))
    expect(isSameServed(facts, { ...facts, [name]: 'another' }), name).toBe(false);
});
