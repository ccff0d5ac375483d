import type { Candidate } from '../core/candidate.ts';
import type { ChatCall } from '../core/chat-call.ts';
import type { LogRow } from '../core/log-row.ts';
import type { AttemptFailure } from '../core/outcome.ts';
import type { SkippedCandidate } from '../core/plan.ts';
import type { Usage } from '../core/usage.ts';

/** One finished attempt. */
export interface AttemptRecord {
  readonly candidate: Candidate;
  /** From 1. */
  readonly number: number;
  readonly end: 'served' | 'failed' | 'aborted';
  readonly failure: AttemptFailure | null;
  readonly durationMs: number;
  /** Null for JSON answers and where no token came. */
  readonly firstTokenMs: number | null;
  readonly usage: Usage | null;
  /** Client fields that the vendor lacks and that were left out. */
  readonly dropped: readonly string[];
}

export type CacheResult = 'hit' | 'miss' | 'bypass';

/** What the story tells its watchers. Calls are cheap and never throw. */
export interface ChatTelemetry {
  candidatesSkipped(call: ChatCall, skipped: readonly SkippedCandidate[]): void;
  attemptEnded(call: ChatCall, record: AttemptRecord): void;
  fellBack(call: ChatCall, from: Candidate, to: Candidate, failure: AttemptFailure): void;
  streamOpened(): void;
  streamClosed(end: 'complete' | 'upstream_error' | 'client_abort' | 'drain_cut'): void;
  cacheAnswered(result: CacheResult): void;
  settled(call: ChatCall, row: LogRow): void;
}
