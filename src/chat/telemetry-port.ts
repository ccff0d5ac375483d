import type { AttemptRecord } from '../core/attempt-record.ts';
import type { Candidate } from '../core/candidate.ts';
import type { AttemptFailure } from '../core/outcome.ts';
import type { SkippedCandidate } from '../core/plan.ts';
import type { ChatCall } from '../core/request/chat-call.ts';
import type { SettledRequest } from '../core/settled-request.ts';
import { cutCauses } from '../core/settled-request.ts';

export const streamEndings = ['complete', 'client_abort', ...cutCauses] as const;
export type StreamEnding = (typeof streamEndings)[number];

/** The trace that a cached answer came from; nulls where none was kept. */
export interface StoringTrace {
  readonly traceId: string | null;
  readonly spanId: string | null;
}

/** Headers that carry the trace to an upstream; none by default. */
export type TraceHeaders = Readonly<Record<string, string>>;

/** What the story reports to its watchers. Calls are cheap and never throw. */
export interface ChatTelemetry {
  /**
   * There is a plan, so that something will be tried and settled: to be called for each, also of one that skips nobody,
   * since the span of a client that leaves waits for the settlement from here on.
   */
  planned(call: ChatCall, skipped: readonly SkippedCandidate[]): void;
  attemptStarted(call: ChatCall, candidate: Candidate, number: number): void;
  /** About to be written to `origin`; a second time for the same attempt when it is sent again. */
  attemptSent(call: ChatCall, candidate: Candidate, origin: string): TraceHeaders;
  /** The vendor's status and headers are there. */
  answerBegan(call: ChatCall): void;
  attemptEnded(call: ChatCall, record: AttemptRecord): void;
  fellBack(call: ChatCall, from: Candidate, to: Candidate, failure: AttemptFailure): void;
  /** `relayMs`: our own time from the read that held the first token to its write to the client. */
  streamOpened(call: ChatCall, relayMs: number): void;
  /** An open stream was silent for `gapMs`, which is long. */
  streamStalled(call: ChatCall, gapMs: number): void;
  /** `stalledMs`: how long the client kept us waiting. */
  streamClosed(end: StreamEnding, stalledMs: number): void;
  cacheHit(call: ChatCall, stored: StoringTrace): void;
  settled(call: ChatCall, settled: SettledRequest): void;
}
