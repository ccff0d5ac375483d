import type { Candidate } from '../core/candidate.ts';
import { featureText } from '../core/capability.ts';
import type { ChatCall } from '../core/chat-call.ts';
import type { ChatCompletion } from '../core/chat-completion.ts';
import { shownFields } from '../core/dropped-fields.ts';
import type { AttemptReport } from '../core/errors.ts';
import type { AttemptFailure } from '../core/outcome.ts';
import type { PlannedCandidates, UnableCandidate } from '../core/plan.ts';
import type { Usage } from '../core/usage.ts';
import type { TranslatedAnswer } from '../providers/provider.ts';
import type { AttemptIo } from './attempt.ts';
import { attempt } from './attempt.ts';
import type { CancelReason } from './client-stream.ts';
import type { CooldownBook } from './cooldown.ts';
import type { AttemptOutcome } from './judgement.ts';
import { brokenAttempt } from './judgement.ts';
import type { OpenStream } from './open-stream.ts';
import type { AttemptRecord, ChatTelemetry, VendorAnswer } from './telemetry-port.ts';

export interface FallbackIo extends AttemptIo {
  readonly cooldown: CooldownBook;
  readonly telemetry: ChatTelemetry;
  /** Told of bugs of ours whose request goes on: with another candidate, or to an end by an error event. */
  readonly reportBug: (cause: unknown, call: ChatCall) => void;
}

/** Who was tried, and what the client asked for that it did not get to see. */
interface Tried {
  readonly candidate: Candidate;
  /** Client fields that were left out. */
  readonly dropped: readonly string[];
}

/** The attempt that served, still to be finished when it is a stream. */
export interface Serving extends Tried {
  readonly number: number;
  readonly startedAtMs: number;
}

export type FallbackResult =
  | { readonly kind: 'answered'; readonly answer: TranslatedAnswer; readonly serving: Serving }
  | { readonly kind: 'stream-opened'; readonly stream: OpenStream; readonly serving: Serving }
  | { readonly kind: 'exhausted'; readonly failures: readonly AttemptFailure[] }
  | {
      readonly kind: 'cancelled';
      readonly reason: CancelReason;
      readonly usage: Usage;
      readonly candidate: Candidate;
    };

/** What became of the candidates of one request, in order; the log row and an exhausted answer show it. */
export class AttemptLedger {
  readonly reports: AttemptReport[] = [];
  /** How many were tried; those passed over are not counted. */
  tries = 0;
  /** The candidate tried last. */
  last: Candidate | null = null;
  /** The candidate that gave the answer, or began its stream. */
  served: Candidate | null = null;
  /** How many of the unable ones are reported. */
  #passed = 0;

  /** The end of one attempt. */
  add(tried: Tried, status: number | null, reason: string, latencyMs: number): void {
    const { provider, model } = tried.candidate;
    const report = { provider, model, status, reason, latency_ms: Math.round(latencyMs) };
    this.tries += 1;
    this.reports.push(
      tried.dropped.length === 0 ? report : { ...report, dropped: shownFields(tried.dropped) },
    );
  }

  /** Those of `unable`, given in their order, whose place is before the candidate of `index`; each once. */
  passOver(unable: readonly UnableCandidate[], index: number): void {
    for (const { provider, model, lacks, before } of unable.slice(this.#passed)) {
      if (before > index) break;
      this.#passed += 1;
      const reason = `skipped: does not support ${featureText(lacks)}`;
      this.reports.push({ provider, model, status: null, reason, latency_ms: 0 });
    }
  }
}

/**
 * Tries the candidates in order until one answers or opens its stream (SPEC 4.5, routing rule 1). Stops
 * when the client is gone or the request's own time is up; nothing is tried after a first token.
 */
export async function fallBack(
  call: ChatCall,
  { candidates, unable }: Pick<PlannedCandidates, 'candidates' | 'unable'>,
  ledger: AttemptLedger,
  io: FallbackIo,
  signal: AbortSignal,
): Promise<FallbackResult> {
  const requestDueMs = call.enteredAtMs + call.tables.document.timeouts.request_seconds * 1000;
  const failures: AttemptFailure[] = [];
  for (const [index, candidate] of candidates.entries()) {
    const startedAtMs = io.clock.monotonicMs();
    if (failures.length > 0 && startedAtMs >= requestDueMs) break;
    ledger.passOver(unable, index);
    ledger.last = candidate;
    io.cooldown.started(candidate, startedAtMs);
    io.telemetry.attemptStarted(call, candidate, index + 1);
    const outcome = await attempt(candidate, call, io, requestDueMs, signal).catch((cause: unknown) => {
      io.reportBug(cause, call);
      return brokenAttempt();
    });
    const serving = { candidate, number: index + 1, startedAtMs, dropped: outcome.dropped };
    if (outcome.kind === 'answered' || outcome.kind === 'stream-opened') {
      ledger.served = candidate;
      io.cooldown.succeeded(candidate, startedAtMs);
    }
    if (outcome.kind === 'answered') {
      const { completion, usage } = outcome.answer;
      served(call, serving, ledger, io, { firstTokenMs: null, usage, answer: vendorAnswer(completion) });
      return { kind: 'answered', answer: outcome.answer, serving };
    }
    if (outcome.kind === 'stream-opened') return { kind: 'stream-opened', stream: outcome.stream, serving };
    const failure = unserved(call, serving, outcome, ledger, io);
    if (outcome.kind === 'cancelled') {
      return { kind: 'cancelled', reason: outcome.reason, usage: outcome.usage, candidate };
    }
    if (failure === null) break;
    failures.push(failure);
    const next = candidates[index + 1];
    if (next !== undefined) io.telemetry.fellBack(call, candidate, next, failure);
  }
  // Those after the last one tried could not have helped, whether the order ended or the time did.
  ledger.passOver(unable, candidates.length);
  return { kind: 'exhausted', failures };
}

/** Books the attempt that gave the whole answer. */
export function served(
  call: ChatCall,
  serving: Serving,
  ledger: AttemptLedger,
  io: FallbackIo,
  facts: Pick<AttemptRecord, 'firstTokenMs' | 'usage' | 'answer'>,
): void {
  const durationMs = io.clock.monotonicMs() - serving.startedAtMs;
  ledger.add(serving, 200, 'served', durationMs);
  io.telemetry.attemptEnded(call, {
    ...recordOf(serving),
    end: 'served',
    failure: null,
    durationMs,
    ...facts,
  });
}

function vendorAnswer({ id, model, choices }: ChatCompletion): VendorAnswer {
  return { id, model, finishReasons: choices.map((choice) => choice.finish_reason) };
}

/** Who an attempt's record is about. */
export function recordOf(
  serving: Serving,
): Pick<AttemptRecord, 'candidate' | 'number' | 'startedAtMs' | 'dropped'> {
  const { candidate, number, startedAtMs, dropped } = serving;
  return { candidate, number, startedAtMs, dropped };
}

function unserved(
  call: ChatCall,
  serving: Serving,
  outcome: Extract<AttemptOutcome, { kind: 'failed' | 'cancelled' }>,
  ledger: AttemptLedger,
  io: FallbackIo,
): AttemptFailure | null {
  const { candidate } = serving;
  const durationMs = io.clock.monotonicMs() - serving.startedAtMs;
  const shared = { ...recordOf(serving), durationMs, firstTokenMs: null, usage: null, answer: null };
  if (outcome.kind === 'cancelled') {
    io.cooldown.abandoned(candidate, serving.startedAtMs);
    ledger.add(serving, null, `cancelled: ${outcome.reason}`, durationMs);
    io.telemetry.attemptEnded(call, { ...shared, usage: outcome.usage, end: 'aborted', failure: null });
    return null;
  }
  const { failure } = outcome;
  io.cooldown.failed(candidate, failure, serving.startedAtMs, call.userId, call.tables);
  const place = candidate.cooled ? ' (tried last: cooldown)' : '';
  ledger.add(serving, failure.status, `${failure.kind}: ${failure.reason}${place}`, durationMs);
  io.telemetry.attemptEnded(call, { ...shared, end: 'failed', failure });
  return failure;
}
