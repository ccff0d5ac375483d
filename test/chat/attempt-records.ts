import type { AttemptRecord } from '../../src/core/attempt-record.ts';
import type { Candidate } from '../../src/core/candidate.ts';

/** A try that answered after its first token, of which nothing else was said. */
export function servedRecord(candidate: Candidate, additions: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    kind: 'tried',
    candidate,
    number: 1,
    isSent: true,
    addressClass: null,
    end: { kind: 'served' },
    startedAtMs: 0,
    durationMs: 200,
    firstTokenMs: 100,
    usage: null,
    answer: null,
    dropped: [],
    ...additions,
  };
}
